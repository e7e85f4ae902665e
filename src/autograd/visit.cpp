#include <tenon/autograd/traceable.h>
#include <tenon/autograd/visit.h>

#include <atomic>
#include <map>
#include <mutex>

#include "support/at_fork.h"

namespace tenon::autograd {

uint64_t new_kind() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

uint64_t detail::kind_of_function(void (*function)()) {
  static auto& mutex = *new support::ForkSafe<std::mutex>;
  static auto* kinds = new std::map<void (*)(), uint64_t>;
  std::lock_guard lock(mutex);
  uint64_t& kind = (*kinds)[function];
  if (kind == 0) kind = new_kind();
  return kind;
}

void NodeVisitor::numbers(SymInts& list) {
  fixed(list.size());
  for (SymInt& each : list) number(each);
}

void NodeVisitor::value(AnyValue& value) {
  fixed(value.kind());
  if (value.is_tensor()) {
    Tensor held = value.tensor();
    tensor(held);
    value = AnyValue(std::move(held));
  } else if (value.is_int()) {
    SymInt held = value.sym_int();
    number(held);
    value = AnyValue(std::move(held));
  } else if (value.is_real()) {
    SymFloat held = value.sym_float();
    number(held);
    value = AnyValue(std::move(held));
  } else if (value.is_bool()) {
    fixed(static_cast<uint64_t>(value.boolean()));
  } else if (value.is_string()) {
    fixed(value.string());
  } else if (value.is_list()) {
    fixed(value.list().size());
    for (AnyValue& each : value.list()) this->value(each);
  } else if (value.is_dict()) {
    fixed(value.dict().size());
    for (AnyValue::Entry& entry : value.dict()) {
      this->value(entry.key);
      this->value(entry.value);
    }
  }
}

}  // namespace tenon::autograd
