#include "io/pickle.h"

#include <fmt/format.h>

#include <unordered_map>

namespace tenon::io {
namespace {

using Document = Object::Document;
using Node = Document::Node;

constexpr size_t kMostNodes = size_t{1} << 24;
constexpr size_t kMostDims = 64;

struct StorageName {
  std::string_view name;
  Dtype dtype;
};
constexpr StorageName kStorages[] = {
    {"torch.FloatStorage", Dtype::Float32}, {"torch.DoubleStorage", Dtype::Float64},
    {"torch.HalfStorage", Dtype::Float16},  {"torch.BFloat16Storage", Dtype::BFloat16},
    {"torch.LongStorage", Dtype::Int64},    {"torch.IntStorage", Dtype::Int32},
    {"torch.ShortStorage", Dtype::Int16},   {"torch.CharStorage", Dtype::Int8},
    {"torch.ByteStorage", Dtype::UInt8},    {"torch.BoolStorage", Dtype::Bool},
};

// Names that may be called, and names that are values.
constexpr std::string_view kCallable[] = {"collections.OrderedDict", "torch._utils._rebuild_tensor_v2",
                                          "torch._utils._rebuild_parameter", "torch.Size", "torch.device"};
constexpr std::string_view kValues[] = {"torch.float32", "torch.float64", "torch.float16", "torch.bfloat16",
                                        "torch.int64",   "torch.int32",   "torch.int16",   "torch.int8",
                                        "torch.uint8",   "torch.bool"};

std::optional<Dtype> storage_dtype(std::string_view name) {
  for (const StorageName& each : kStorages)
    if (each.name == name) return each.dtype;
  return std::nullopt;
}

template <size_t N>
bool among(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The operations of pickles that are admitted, by their byte.
enum Operation : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersId = 'Q',
  kReduce = 'R',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyTuple = ')',
  kEmptyList = ']',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const StorageLoader& load_storage)
      : bytes_(bytes), load_storage_(load_storage), document_(std::make_shared<Document>()) {}

  Object run() {
    while (true) {
      auto operation = static_cast<uint8_t>(take(1)[0]);
      if (operation == kStop) break;
      step(operation);
    }
    size_t result = pop();
    return Object(document_, result);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const { fail<ValueError>("byte {} of the pickle: {}", at_, why); }

  std::span<const std::byte> take(uint64_t count) {
    if (count > bytes_.size() - at_) refuse("it is cut short");
    at_ += count;
    return bytes_.subspan(at_ - count, count);
  }
  template <typename T>
  T number() {
    return little<T>(take(sizeof(T)), 0);
  }
  std::string text(uint64_t length) {
    std::span<const std::byte> letters = take(length);
    return {reinterpret_cast<const char*>(letters.data()), letters.size()};
  }
  std::string line() {
    std::string result;
    for (char letter = static_cast<char>(take(1)[0]); letter != '\n'; letter = static_cast<char>(take(1)[0]))
      result += letter;
    return result;
  }

  // The stack --------------------------------------------------------------------------------------------------------

  void push(Node node) {
    if (document_->nodes.size() >= kMostNodes) refuse("it has too many values");
    stack_.push_back(document_->nodes.size());
    document_->nodes.push_back(std::move(node));
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  size_t pop() {
    if (stack_.size() <= floor()) refuse("it takes from an empty stack");
    size_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<size_t> pop_to_mark() {
    if (marks_.empty()) refuse("it looks for a mark that there is not");
    std::vector<size_t> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  // What is on top stays there.
  Node& top(Node::Kind kind, std::string_view what) {
    if (stack_.size() <= floor()) refuse("it takes from an empty stack");
    Node& node = document_->nodes[stack_.back()];
    if (node.kind != kind) refuse(fmt::format("expected {}", what));
    return node;
  }
  void push_list(std::vector<size_t> items) {
    Node node;
    node.kind = Node::Kind::List;
    node.items = std::move(items);
    push(std::move(node));
  }
  void push_text(std::string value, Node::Kind kind = Node::Kind::Text) {
    Node node;
    node.kind = kind;
    node.text = std::move(value);
    push(std::move(node));
  }
  void push_integer(int64_t value, Node::Kind kind = Node::Kind::Int) {
    Node node;
    node.kind = kind;
    node.integer = value;
    push(std::move(node));
  }
  void last(size_t count) {
    std::vector<size_t> items(count);
    for (size_t at = count; at-- > 0;) items[at] = pop();
    push_list(std::move(items));
  }

  const Node& node(size_t which) const { return document_->nodes[which]; }

  // Operations -------------------------------------------------------------------------------------------------------

  void step(uint8_t operation) {
    switch (operation) {
      case kProto:
        if (uint8_t version = number<uint8_t>(); version < 2 || version > 5)
          refuse(fmt::format("expected version 2 to 5 of the format, got {}", version));
        return;
      case kFrame: take(8); return;
      case kMark: marks_.push_back(stack_.size()); return;
      case kPop: pop(); return;
      case kPopMark: pop_to_mark(); return;
      case kNone: push(Node()); return;
      case kNewTrue: push_integer(1, Node::Kind::Bool); return;
      case kNewFalse: push_integer(0, Node::Kind::Bool); return;
      case kBinInt: push_integer(number<int32_t>()); return;
      case kBinInt1: push_integer(number<uint8_t>()); return;
      case kBinInt2: push_integer(number<uint16_t>()); return;
      case kLong1: push_integer(long_number()); return;
      case kBinFloat: push_real(); return;
      case kShortBinUnicode: push_text(text(number<uint8_t>())); return;
      case kBinUnicode: push_text(text(number<uint32_t>())); return;
      case kBinUnicode8: push_text(text(number<uint64_t>())); return;
      case kEmptyList:
      case kEmptyTuple: push_list({}); return;
      case kList:
      case kTuple: push_list(pop_to_mark()); return;
      case kTuple1: last(1); return;
      case kTuple2: last(2); return;
      case kTuple3: last(3); return;
      case kEmptyDict: push_dict({}); return;
      case kDict: push_dict(pop_to_mark()); return;
      case kAppend: {
        size_t item = pop();
        top(Node::Kind::List, "a list to append to").items.push_back(item);
        return;
      }
      case kAppends: {
        std::vector<size_t> items = pop_to_mark();
        std::vector<size_t>& list = top(Node::Kind::List, "a list to append to").items;
        list.insert(list.end(), items.begin(), items.end());
        return;
      }
      case kSetItem: {
        size_t value = pop(), key = pop();
        set_items({key, value});
        return;
      }
      case kSetItems: set_items(pop_to_mark()); return;
      case kBinPut: put(number<uint8_t>()); return;
      case kLongBinPut: put(number<uint32_t>()); return;
      case kMemoize: put(memo_.size()); return;
      case kBinGet: get(number<uint8_t>()); return;
      case kLongBinGet: get(number<uint32_t>()); return;
      case kGlobal: {
        std::string module = line();
        push_name(module + "." + line());
        return;
      }
      case kStackGlobal: {
        size_t member = pop(), module = pop();
        if (node(member).kind != Node::Kind::Text || node(module).kind != Node::Kind::Text) refuse("expected a name");
        push_name(node(module).text + "." + node(member).text);
        return;
      }
      case kBinPersId: push_storage(pop()); return;
      case kReduce: {
        size_t arguments = pop(), function = pop();
        call(function, arguments);
        return;
      }
      // The attributes of a dictionary (PyTorch keeps versions of modules there).
      case kBuild:
        pop();
        top(Node::Kind::Dict, "a dictionary that has attributes");
        return;
      default: refuse(fmt::format("an operation that builds no data, 0x{:02x}", operation));
    }
  }

  int64_t long_number() {
    auto length = number<uint8_t>();
    if (length > 8) refuse("a number of more than 64 bits");
    std::span<const std::byte> digits = take(length);
    uint64_t value = length > 0 && (uint8_t(digits[length - 1u]) & 0x80) ? ~uint64_t{0} : 0;
    for (size_t byte = length; byte-- > 0;) value = value << 8 | uint64_t(digits[byte]);
    return static_cast<int64_t>(value);
  }

  void push_real() {
    uint64_t bits = 0;
    for (std::byte byte : take(8)) bits = bits << 8 | uint64_t(byte);
    Node node;
    node.kind = Node::Kind::Real;
    node.real = std::bit_cast<double>(bits);
    push(std::move(node));
  }

  void check_entries(const std::vector<size_t>& entries) const {
    if (entries.size() % 2 != 0) refuse("expected a value for each key");
    for (size_t at = 0; at < entries.size(); at += 2)
      if (Node::Kind kind = node(entries[at]).kind; kind != Node::Kind::Text && kind != Node::Kind::Int)
        refuse("expected texts and numbers as the keys of a dictionary");
  }
  void push_dict(std::vector<size_t> entries) {
    check_entries(entries);
    Node node;
    node.kind = Node::Kind::Dict;
    node.items = std::move(entries);
    push(std::move(node));
  }
  void set_items(const std::vector<size_t>& entries) {
    check_entries(entries);
    std::vector<size_t>& dict = top(Node::Kind::Dict, "a dictionary").items;
    dict.insert(dict.end(), entries.begin(), entries.end());
  }

  void put(size_t slot) {
    if (stack_.size() <= floor()) refuse("it takes from an empty stack");
    memo_[slot] = stack_.back();
  }
  void get(size_t slot) {
    auto found = memo_.find(slot);
    if (found == memo_.end()) refuse("it refers to what it did not note");
    if (stack_.size() >= kMostNodes) refuse("it has too many values");
    stack_.push_back(found->second);
  }

  void push_name(std::string name) {
    if (!among(kCallable, name) && !among(kValues, name) && !storage_dtype(name))
      refuse(fmt::format("'{}' is neither a tensor nor a container, and is not run", name));
    push_text(std::move(name), Node::Kind::Name);
  }

  // ('storage', type, key, place, number of elements)
  void push_storage(size_t description) {
    const Node& list = node(description);
    auto item = [&](size_t at, Node::Kind kind) -> const Node& {
      if (node(list.items[at]).kind != kind) refuse("expected the description of a storage");
      return node(list.items[at]);
    };
    if (list.kind != Node::Kind::List || list.items.size() != 5 || item(0, Node::Kind::Text).text != "storage")
      refuse("expected the description of a storage");
    std::optional<Dtype> dtype = storage_dtype(item(1, Node::Kind::Name).text);
    const std::string& key = item(2, Node::Kind::Text).text;
    item(3, Node::Kind::Text);
    int64_t count = item(4, Node::Kind::Int).integer;
    if (!dtype || count < 0) refuse("expected the description of a storage");
    Tensor& loaded = storages_[key];
    if (!loaded.defined() || loaded.dtype() != *dtype || int64_t(loaded.numel()) != count)
      loaded = load_storage_(key, *dtype, count);
    Node storage;
    storage.kind = Node::Kind::Storage;
    storage.integer = count;
    storage.tensor = loaded;
    push(std::move(storage));
  }

  void call(size_t function, size_t arguments) {
    if (node(function).kind != Node::Kind::Name || node(arguments).kind != Node::Kind::List)
      refuse("expected a name to call");
    const std::string& name = node(function).text;
    const std::vector<size_t> items = node(arguments).items;
    if (name == "collections.OrderedDict") {
      push_ordered(items);
    } else if (name == "torch._utils._rebuild_tensor_v2") {
      push_tensor(items);
    } else if (name == "torch._utils._rebuild_parameter") {
      if (items.empty() || node(items[0]).kind != Node::Kind::Tensor) refuse("expected a parameter's tensor");
      stack_.push_back(items[0]);
    } else if (name == "torch.Size" && items.size() == 1 && node(items[0]).kind == Node::Kind::List) {
      stack_.push_back(items[0]);
    } else if (name == "torch.device" && !items.empty() && node(items[0]).kind == Node::Kind::Text) {
      stack_.push_back(items[0]);
    } else {
      refuse(fmt::format("'{}' cannot be called so", name));
    }
  }

  // Of nothing, or of a list of pairs.
  void push_ordered(const std::vector<size_t>& arguments) {
    std::vector<size_t> entries;
    if (arguments.size() > 1 || (arguments.size() == 1 && node(arguments[0]).kind != Node::Kind::List))
      refuse("expected the entries of a dictionary");
    if (!arguments.empty())
      for (size_t pair : node(arguments[0]).items) {
        if (node(pair).kind != Node::Kind::List || node(pair).items.size() != 2)
          refuse("expected the entries of a dictionary");
        entries.insert(entries.end(), node(pair).items.begin(), node(pair).items.end());
      }
    push_dict(std::move(entries));
  }

  Ints numbers(size_t list) const {
    Ints result;
    if (node(list).kind != Node::Kind::List || node(list).items.size() > kMostDims) refuse("expected a list of sizes");
    for (size_t item : node(list).items) {
      if (node(item).kind != Node::Kind::Int || node(item).integer < 0) refuse("expected numbers of at least 0");
      result.push_back(node(item).integer);
    }
    return result;
  }

  // (storage, offset, sizes, strides, requires_grad, hooks, …)
  void push_tensor(const std::vector<size_t>& arguments) {
    if (arguments.size() < 4 || node(arguments[0]).kind != Node::Kind::Storage ||
        node(arguments[1]).kind != Node::Kind::Int || node(arguments[1]).integer < 0)
      refuse("expected the description of a tensor");
    const Node& storage = node(arguments[0]);
    int64_t offset = node(arguments[1]).integer;
    Ints sizes = numbers(arguments[2]), strides = numbers(arguments[3]);
    if (sizes.size() != strides.size()) refuse("expected as many strides as sizes");
    std::optional<int64_t> count = element_count(sizes.span());
    if (!count) refuse("expected sizes that fit into memory");
    if (*count > 0) {
      __int128 last = offset;
      for (size_t dim = 0; dim < sizes.size(); ++dim) last += __int128(sizes[dim] - 1) * strides[dim];
      if (last >= storage.integer) refuse("a tensor reaches beyond its storage");
    }
    Node made;
    made.kind = Node::Kind::Tensor;
    made.tensor = *count > 0 ? core::make_view(storage.tensor, SymInts(sizes.span()), SymInts(strides.span()), offset)
                             : core::allocate(sizes.span(), core::contiguous_strides(sizes.span()).span(),
                                              storage.tensor.dtype(), kCPU);
    push(std::move(made));
  }

  std::span<const std::byte> bytes_;
  const StorageLoader& load_storage_;
  std::shared_ptr<Document> document_;
  size_t at_ = 0;
  std::vector<size_t> stack_, marks_;
  std::unordered_map<size_t, size_t> memo_;
  std::unordered_map<std::string, Tensor> storages_;
};

}  // namespace

Object read_pickle(std::span<const std::byte> bytes, const StorageLoader& load_storage) {
  return Machine(bytes, load_storage).run();
}

}  // namespace tenon::io
