// docs/operators.md is what the table says: of each row its schema, meaning, dtypes, an example, and whether it is
// fused. tools/operator_reference writes it anew (TENON_UPDATE_REFERENCE=1).
#include "ops/samples.h"

#include <gtest/gtest.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/fake/fake.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace tenon::test {
namespace {

using dispatch::Value;

const std::filesystem::path kSource = TENON_SOURCE_DIR;

constexpr const char* kHead = R"(# Operators: the reference

<!-- Written by tools/operator_reference from the rows of src/ops. Do not edit. -->

Every row of the operator table, by the file that it stands in. `x` and `y` are float32 tensors [2, 3] in the examples,
which are compiled as tests; a row that only graphs name is shown with arguments of a test. In-place forms and those
with `out=` follow from a row and stand behind it. What is fused becomes part of a kernel with its neighbours;
`build/tenon ops NAME` says more of one.

)";

std::string file_of(const ops::Row& row) {
  const std::string path = row.file ? row.file : "?";
  const size_t at = path.rfind("src/ops/");
  return at == path.npos ? path : path.substr(at);
}

// What the file says of itself: its first comment, without the slashes.
std::string first_comment(const std::string& file) {
  std::ifstream text(kSource / file);
  std::string comment;
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with("//")) {
      if (!comment.empty() || !line.starts_with("#include \"")) break;
      continue;
    }
    comment += (comment.empty() ? "" : " ") + line.substr(std::min<size_t>(3, line.size()));
  }
  return comment;
}

// name → meaning
std::map<std::string, std::string> meanings() {
  std::map<std::string, std::string> found;
  std::ifstream text(kSource / "docs" / "operator_meanings.txt");
  for (std::string line; std::getline(text, line);)
    if (const size_t colon = line.find(": "); !line.starts_with('#') && colon != line.npos)
      found[line.substr(0, colon)] = line.substr(colon + 2);
  return found;
}

// "aten::add.Tensor" → "add(x, y);", from the comments of the generated headers.
std::map<std::string, std::string> examples() {
  std::map<std::string, std::string> found;
  const auto folder = std::filesystem::path(TENON_BINARY_DIR) / "generated" / "include" / "tenon" / "generated" / "ops";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream text(entry.path());
    std::string schema;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("// aten::"))
        schema = line.substr(3, line.find('(') - 3);
      else if (line.starts_with("//   ") && !schema.empty())
        found.try_emplace(schema, line.substr(5));
      else if (!line.starts_with("//"))
        schema.clear();
    }
  }
  return found;
}

Value as_fake(const Value& value) {
  return value.map_tensors([](const Tensor& each) { return each.defined() ? fake::like(each) : each; });
}

// Whether the row takes this sample, as far as sizes and dtypes tell; or, where data has a say, for real.
bool takes(const ops::Row& row, const Sample& sample, bool for_real) {
  autograd::SetGradMode off(false);
  try {
    if (for_real) {
      dispatch::call_boxed(*row.op, sample.copy());
      return true;
    }
    fake::FakeMode fakes;
    dispatch::Values values;
    for (const Value& value : sample.copy()) values.push_back(as_fake(value).own());
    dispatch::call_boxed(*row.op, values);
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct Tried {
  std::set<Dtype> dtypes;
  std::string sample;  // arguments, if there is no example
};
Tried tried(const ops::Row& row, bool for_real) {
  constexpr Dtype kAll[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kInt16, kInt8, kUInt8, kBool};
  Tried made;
  for (Dtype dtype : kAll)
    for (int variant = 0; variant < 4 && !made.dtypes.contains(dtype); ++variant) {
      const Recipe recipe{.shape = {2, 3}, .dtype = dtype, .values = Values::Positive, .variant = variant};
      std::optional<Sample> sample = make_sample(row, recipe);
      if (!sample || !takes(row, *sample, for_real)) continue;
      made.dtypes.insert(dtype);
      if (made.sample.empty()) made.sample = row.op->name() + sample->str();
    }
  return made.dtypes.empty() && !for_real ? tried(row, true) : made;
}

std::string names_of(const std::set<Dtype>& dtypes) {
  if (dtypes.empty()) return "none was tried";
  const std::vector<std::pair<std::string, std::vector<Dtype>>> groups = {
      {"floats", {kFloat32, kFloat64, kFloat16, kBFloat16}}, {"integers", {kInt64, kInt32, kInt16, kInt8, kUInt8}}};
  std::vector<std::string> words;
  for (const auto& [word, members] : groups) {
    if (std::ranges::all_of(members, [&](Dtype each) { return dtypes.contains(each); })) {
      words.push_back(word);
      continue;
    }
    for (Dtype each : members)
      if (dtypes.contains(each)) words.emplace_back(name(each));
  }
  if (dtypes.contains(kBool)) words.emplace_back("bool");
  return fmt::format("{}", fmt::join(words, ", "));
}

// Why loops cannot compute it beside others.
std::string why_opaque(const ops::Row& row) {
  static const std::map<std::string, std::string> reasons = {
      {"matmul", "a product that the library computes by tiles"},
      {"convolution", "a convolution that the library computes by tiles"},
      {"attention", "attention by tiles, whose weights never reach memory"},
      {"indexing", "it writes at places that only data tells"},
      {"scatter", "it writes at places that only data tells"},
      {"scattering", "it writes at places that only data tells"},
      {"scatter_reduce", "it combines at places that only data tells"},
      {"sort", "an order is found by comparing elements all over a row"},
      {"order_statistics", "an order is found by comparing elements all over a row"},
      {"running", "each element needs the one before it"},
      {"pooling", "windows are walked, and their places remembered"},
  };
  if (row.dynamic()) return "only data tells how large its result is";
  const std::string file = std::filesystem::path(file_of(row)).stem().string(), &name = row.schema.name;
  if (const auto found = reasons.find(file); found != reasons.end()) return found->second;
  auto has = [&](const char* word) { return name.find(word) != name.npos; };
  if (has("special_") || file.starts_with("special") || file == "polynomials" || file == "numbers")
    return "a series for each element, of as many terms as its number asks for";
  if (has("cum") || has("ctc")) return "each step needs the one before it";
  if (has("bmm")) return "a product that the library computes by tiles";
  if (has("bits")) return "the library takes the memory for another dtype";
  if (has("pool")) return "windows are walked, and their places remembered";
  return file == "factorizations" || file == "linear_systems" || file == "matrix_functions" || has("linalg")
             ? "a factorization, step by step over a whole matrix"
             : "its elements depend on each other in ways that no loop over them says";
}

std::string fused(const ops::Row& row) {
  switch (row.kind) {
    case ops::Kind::Pointwise: return "fused, as an expression of each element";
    case ops::Kind::Reduction: return "fused, as a loop over what it sums up";
    case ops::Kind::Element:
      if (row.element.random) return "fused: a number follows from the seed and its element's place";
      if (row.element.uninitialised) return "nothing is computed";
      return "fused: each element reads where it must";
    case ops::Kind::View: return "nothing is computed: what reads it reads elsewhere";
    case ops::Kind::Composite: return "taken apart, and fused as its parts are";
    case ops::Kind::Opaque: break;
  }
  return "not fused: " + why_opaque(row);
}

std::string gradients(const ops::Row& row) {
  if (row.kind == ops::Kind::Composite && row.grads.empty()) return "through its parts";
  std::vector<std::string> inputs;
  for (const ops::GradRule& rule : row.grads)
    if (rule.implemented) inputs.push_back("`" + rule.input + "`");
  return inputs.empty() ? "none" : fmt::format("{}", fmt::join(inputs, ", "));
}

std::vector<const ops::Row*> rows() {
  std::vector<const ops::Row*> list;
  for (const dispatch::Operator* op : dispatch::all_operators())
    if (const ops::Row* row = ops::row_of(*op); row && !row->inplace()) list.push_back(row);
  std::ranges::sort(list, {},
                    [](const ops::Row* row) { return std::tuple(file_of(*row), row->line, row->op->name()); });
  return list;
}

std::string page(std::vector<std::string>& unexplained) {
  const auto meaning = meanings();
  const auto example = examples();
  std::ostringstream out;
  out << kHead;
  std::string file;
  for (const ops::Row* row : rows()) {
    if (file_of(*row) != file) {
      file = file_of(*row);
      out << "## `" << file << "`\n\n" << first_comment(file) << "\n\n";
    }
    const auto said = meaning.find(row->schema.name);
    if (said == meaning.end()) unexplained.push_back(row->schema.name);
    const Tried works = tried(*row, row->dynamic());
    const auto shown = example.find(row->op->name());
    std::string forms;
    if (row->inplace_op) forms += " `" + row->inplace_op->name().substr(row->inplace_op->name().find("::") + 2) + "`";
    const std::string brief = row->op->name().substr(row->op->name().find("::") + 2);
    for (const std::string& form : {brief + ".out", row->schema.name + "." + row->schema.overload + "_out"})
      if (row->kind == ops::Kind::Pointwise && dispatch::find_operator_or_null("aten::" + form))
        forms += " `" + form + "`";
    out << "**`" << brief << "`** " << (said == meaning.end() ? "" : said->second) << "\n\n```\n"
        << row->schema.str() << "\n"
        << (shown != example.end() ? shown->second : works.sample) << "\n```\n\n"
        << "Dtypes: " << names_of(works.dtypes) << ". Gradients: " << gradients(*row) << ". Here it is " << fused(*row)
        << "." << (forms.empty() ? "" : " Forms:" + forms + ".") << "\n\n";
  }
  std::string text = out.str();
  text.pop_back();
  return text;
}

TEST(OperatorReference, is_what_the_rows_say) {
  const std::filesystem::path path = kSource / "docs" / "operators.md";
  std::vector<std::string> unexplained;
  const std::string text = page(unexplained);
  EXPECT_TRUE(unexplained.empty()) << "docs/operator_meanings.txt says nothing of "
                                   << fmt::format("{}", fmt::join(unexplained, ", "));
  if (const char* update = std::getenv("TENON_UPDATE_REFERENCE"); update && *update == '1') {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::ostringstream there;
  there << file.rdbuf();
  if (there.str() == text) return;
  std::istringstream is(there.str()), should(text);
  std::string a, b;
  int line = 0;
  do {
    ++line;
    a.clear(), b.clear();
    std::getline(is, a), std::getline(should, b);
  } while (a == b);
  ADD_FAILURE() << "docs/operators.md is not what the rows say, from line " << line
                << " on: run tools/operator_reference\n- " << a << "\n+ " << b;
}

// What has a meaning is a row, so that none stays behind when one goes.
TEST(OperatorReference, explains_nothing_else) {
  std::set<std::string> names;
  for (const ops::Row* row : rows()) names.insert(row->schema.name);
  for (const auto& [name, meaning] : meanings()) EXPECT_TRUE(names.contains(name)) << name;
}

}  // namespace
}  // namespace tenon::test
