// The extension module `tenon._core`: what Python's side describes a program with, and calls its parts by.
#include "exchange.h"
#include "part.h"

#include <tenon/generated/version.h>
#include <tenon/support/counters.h>
#include <tenon/support/log.h>

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <bit>

namespace nb = nanobind;

namespace tenon::python {
namespace {

Number to_number(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  return nb::cast<int64_t>(object);
}

std::vector<Number> to_numbers(nb::handle list) {
  std::vector<Number> numbers;
  for (nb::handle each : list) numbers.push_back(to_number(each));
  return numbers;
}

// (dtype, sizes, strides); None: undefined.
std::optional<TensorType> to_type(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  auto parts = nb::cast<nb::tuple>(object);
  auto dtype_name = nb::cast<std::string>(parts[0]);
  std::optional<Dtype> dtype = dtype_from_name(dtype_name);
  TENON_CHECK_TYPE(dtype, "there are no tensors of {} here", dtype_name);
  return TensorType{to_numbers(parts[1]), to_numbers(parts[2]), *dtype};
}

Literal to_literal(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bool_>(object)) return {nb::cast<bool>(object)};
  if (nb::isinstance<nb::int_>(object)) return {nb::cast<int64_t>(object)};
  if (nb::isinstance<nb::float_>(object)) return {nb::cast<double>(object)};
  if (nb::isinstance<nb::str>(object)) return {nb::cast<std::string>(object)};
  if (nb::isinstance<Reference>(object)) return {nb::cast<Reference>(object)};
  if (nb::isinstance<Symbolic>(object)) return {nb::cast<Symbolic>(object)};
  if (nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object)) {
    std::vector<Literal> list;
    for (nb::handle each : object) list.push_back(to_literal(each));
    return {std::move(list)};
  }
  fail<TypeError>("an argument of Python's type {} cannot be passed",
                  nb::cast<std::string>(nb::str(object.type().attr("__name__"))));
}

// A program that grows call by call, each tried at once.
class Tracer {
 public:
  std::string add_symbol(const std::string& kind, nb::handle hint, std::optional<int64_t> least,
                         std::optional<int64_t> most) {
    TENON_CHECK(!trial_, "[add_symbol] symbols come before values");
    Symbol symbol;
    symbol.range = {least.value_or(sym::Range::kMin), most.value_or(sym::Range::kMax)};
    symbol.kind = kind == "size" ? Symbol::Kind::Size : kind == "real" ? Symbol::Kind::Real : Symbol::Kind::Integer;
    const bool real = symbol.kind == Symbol::Kind::Real;
    symbol.hint = real ? std::bit_cast<int64_t>(nb::cast<double>(hint)) : nb::cast<int64_t>(hint);
    program_->symbols.push_back(symbol);
    return real ? fmt::format("f{}", reals_++) : fmt::format("s{}", integers_++);
  }

  Reference add_input(nb::handle type) {
    std::optional<TensorType> given = to_type(type);
    TENON_CHECK(given, "[add_input] expected a type, got None");
    int32_t value = program_->add_value(std::move(*given));
    trial().add_input(value);
    return {value};
  }

  // Why it cannot be called, or nothing; the position of the call; its results.
  nb::tuple call(std::string op, nb::handle arguments, nb::handle types) {
    std::string why;
    nb::list results;
    try {
      CallDescription call{std::move(op), {}, {}, {}};
      for (nb::handle each : arguments) {
        auto pair = nb::cast<nb::tuple>(each);
        call.arguments.emplace_back(nb::cast<std::string>(pair[0]), to_literal(pair[1]));
      }
      for (nb::handle each : types) {
        call.types.push_back(to_type(each));
        call.results.push_back(program_->add_value(call.types.back().value_or(TensorType{})));
      }
      Decision made = trial().call(call);
      if (made) {
        for (int32_t value : call.results) results.append(nb::cast(Reference{value}));
        program_->calls.push_back(std::move(call));
        return nb::make_tuple(nb::none(), program_->calls.size() - 1, results);
      }
      why = made.why();
    } catch (const Error& error) {
      why = error.what();
    }
    return nb::make_tuple(why, nb::none(), results);
  }

  // No more calls: the fakes of the trial go.
  void finish() { trial_.reset(); }

  std::shared_ptr<const Program> program() const { return program_; }

 private:
  Build& trial() {
    if (!trial_) {
      std::vector<int64_t> hints;
      for (const Symbol& symbol : program_->symbols) hints.push_back(symbol.hint);
      trial_ = std::make_unique<Build>(*program_, hints);
    }
    return *trial_;
  }

  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::unique_ptr<Build> trial_;
  int integers_ = 0, reals_ = 0;
};

// A part as Python calls it: with the other library's tensors, then numbers.
class PyPart {
 public:
  PyPart(const Tracer& tracer, std::vector<size_t> calls, const std::vector<Reference>& inputs,
         const std::vector<Reference>& outputs, const Exchange& exchange, nb::object make_view)
      : make_view_(std::move(make_view)), exchange_(exchange) {
    auto values = [](const std::vector<Reference>& references) {
      std::vector<int32_t> list;
      for (const Reference& each : references) list.push_back(each.value);
      return list;
    };
    nb::gil_scoped_release release;
    part_ = std::make_unique<Part>(tracer.program(), std::move(calls), values(inputs), values(outputs));
  }

  nb::tuple call(const nb::args& args) {
    const size_t tensors = part_->input_count(), numbers = part_->numbers().size();
    TENON_CHECK_TYPE(args.size() == tensors + numbers, "expected {} tensors and {} numbers, got {} arguments", tensors,
                     numbers, args.size());
    SmallVector<Tensor, 16> inputs;
    SmallVector<const Storage*, 16> memory;
    for (size_t at = 0; at < tensors; ++at) {
      inputs.push_back(exchange_.borrow(nb::handle(args[at]).ptr()));
      memory.push_back(inputs[at].impl()->storage.get());
    }
    SmallVector<int64_t, 8> values;
    for (size_t at = 0; at < numbers; ++at) {
      nb::handle number = args[tensors + at];
      values.push_back(part_->is_real(at) ? std::bit_cast<int64_t>(nb::cast<double>(number))
                                          : nb::cast<int64_t>(number));
    }
    Part::Outcome outcome;
    {
      nb::gil_scoped_release release;
      outcome = part_->run({inputs.data(), inputs.size()}, values.span());
    }
    nb::object results = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(outcome.results.size())));
    if (!results) throw PythonError();
    SmallVector<nb::object, 4> wholes;
    if (outcome.homes) wholes.resize(outcome.results.size());
    for (size_t at = 0; at < outcome.results.size(); ++at) {
      Tensor& result = outcome.results[at];
      nb::object given;
      if (!outcome.homes) {
        given = give(std::move(result));
      } else if (Part::Home home = (*outcome.homes)[at];
                 home.input >= 0 && result.impl()->storage.get() == memory[static_cast<size_t>(home.input)]) {
        given = view_of(args[static_cast<size_t>(home.input)], result);
      } else if (home.input >= 0 || home.first >= 0) {
        nb::object& whole = wholes[home.first >= 0 ? static_cast<size_t>(home.first) : at];
        if (!whole) whole = give(whole_of(result));
        given = view_of(whole, result);
      } else {
        given = give(std::move(result));
      }
      PyTuple_SET_ITEM(results.ptr(), static_cast<Py_ssize_t>(at), given.release().ptr());
    }
    return nb::borrow<nb::tuple>(results);
  }

  const Part& part() const { return *part_; }

 private:
  nb::object give(Tensor tensor) const { return nb::steal(exchange_.give(std::move(tensor))); }

  // Results that share memory share the other library's storage too, and begin in it where ours do.
  nb::object view_of(nb::handle base, const Tensor& result) const {
    auto tuple = [](std::span<const int64_t> numbers) {
      nb::object list = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
      for (size_t at = 0; at < numbers.size(); ++at)
        PyTuple_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(at), PyLong_FromLongLong(numbers[at]));
      return list;
    };
    const TensorImpl& impl = *result.impl();
    return make_view_(base, tuple(impl.sizes.span()), tuple(impl.strides.span()), impl.offset);
  }

  // All of the memory that a result lies in.
  static Tensor whole_of(const Tensor& result) {
    auto impl = make_ref<TensorImpl>();
    const TensorImpl& part = *result.impl();
    impl->storage = part.storage;
    impl->sizes = Ints{part.storage->bytes() / size_of(part.dtype)};
    impl->strides = Ints{1};
    impl->dtype = part.dtype;
    impl->device = part.device;
    impl->keys = part.keys;
    impl->version = make_ref<Version>();
    return Tensor(impl);
  }

  nb::object make_view_;
  Exchange exchange_;
  std::unique_ptr<Part> part_;
};

}  // namespace
}  // namespace tenon::python

NB_MODULE(_core, module) {
  using namespace tenon;
  using namespace tenon::python;
  module.attr("__version__") = TENON_VERSION;
  // PyTorch keeps compiled functions to the very end, with what they hold.
  nb::set_leak_warnings(false);
  nb::exception<InternalError>(module, "InternalError", PyExc_RuntimeError);
  nb::exception<Error>(module, "Error", PyExc_RuntimeError);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const PythonError&) {
      // Python knows already.
    }
  });

  module.def("counters", &counters, "Counts by name since the start, or since `reset_counters`.");
  module.def("reset_counters", &reset_counters);
  module.def(
      "set_logs", [](const std::string& topics) { set_logs(topics); }, nb::arg("topics"),
      "Replaces the topics that are logged, as TENON_LOGS does.");
  module.def(
      "has_operator", [](const std::string& name) { return dispatch::find_operator_or_null(name) != nullptr; },
      nb::arg("name"), "Whether there is an operator of that name, as in 'aten::add.Tensor'.");

  nb::class_<Reference>(module, "Reference");
  nb::class_<Symbolic>(module, "Symbolic").def(nb::init<std::string>(), nb::arg("text"));
  nb::class_<Exchange>(module, "Exchange").def("__init__", [](Exchange* self, nb::handle capsule) {
    new (self) Exchange(capsule.ptr());
  });
  nb::class_<Tracer>(module, "Tracer")
      .def(nb::init<>())
      .def("add_symbol", &Tracer::add_symbol, nb::arg("kind"), nb::arg("hint"), nb::arg("least").none(),
           nb::arg("most").none())
      .def("add_input", &Tracer::add_input, nb::arg("type"))
      .def("call", &Tracer::call, nb::arg("op"), nb::arg("arguments"), nb::arg("types"))
      .def("finish", &Tracer::finish);
  nb::class_<PyPart>(module, "Part", nb::is_weak_referenceable())
      .def(nb::init<const Tracer&, std::vector<size_t>, const std::vector<Reference>&, const std::vector<Reference>&,
                    const Exchange&, nb::object>(),
           nb::arg("tracer"), nb::arg("calls"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("exchange"),
           nb::arg("make_view"))
      .def("__call__", &PyPart::call)
      .def_prop_ro("numbers", [](const PyPart& self) { return self.part().numbers(); })
      .def_prop_ro("variants", [](const PyPart& self) { return self.part().variant_count(); })
      .def("__str__", [](const PyPart& self) { return self.part().str(); });
}
