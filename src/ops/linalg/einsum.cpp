// Sums of products by Einstein's convention: indices are letters, and what the result lacks is summed over.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

#include <algorithm>
#include <cctype>

namespace tenon::ops {
namespace {

// A dimension: a letter, or one of those that an ellipsis stands for, counted from the last one (-1).
using Label = int;
using Labels = std::vector<Label>;

bool has(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

struct Equation {
  std::vector<std::string> inputs;
  std::optional<std::string> output;
};

constexpr std::string_view kEllipsis = "...";

Equation parse(std::string_view text) {
  Equation equation;
  std::string compact;
  for (char letter : text)
    if (!std::isspace(static_cast<unsigned char>(letter))) compact += letter;
  std::string_view left = compact;
  if (size_t arrow = compact.find("->"); arrow != std::string::npos) {
    equation.output = compact.substr(arrow + 2);
    left = left.substr(0, arrow);
  }
  for (size_t at = 0;;) {
    size_t comma = left.find(',', at);
    equation.inputs.emplace_back(left.substr(at, comma == left.npos ? left.npos : comma - at));
    if (comma == left.npos) break;
    at = comma + 1;
  }
  return equation;
}

// The labels of one operand, or of the result; `rank` says how many dimensions an ellipsis stands for.
Labels labels_of(const std::string& subscript, size_t rank, std::string_view equation, const std::string& whose) {
  size_t dots = subscript.find(kEllipsis), letters = subscript.size() - (dots == subscript.npos ? 0 : kEllipsis.size());
  TENON_CHECK(dots == subscript.npos ? rank == letters : rank >= letters,
              "[einsum] {} of '{}' has {} subscripts, and the tensor has {} dimensions", whose, equation, letters,
              rank);
  Labels labels;
  for (size_t at = 0; at < subscript.size();) {
    if (at == dots) {
      for (size_t left = rank - letters; left > 0; --left) labels.push_back(-static_cast<Label>(left));
      at += kEllipsis.size();
      continue;
    }
    auto letter = static_cast<unsigned char>(subscript[at++]);
    TENON_CHECK(std::isalpha(letter), "[einsum] expected letters and at most one ellipsis ('...') in {} of '{}'", whose,
                equation);
    labels.push_back(letter);
  }
  return labels;
}

struct Term {
  Tensor tensor;
  Labels labels;  // one per dimension, each once

  SymInt size(Label label) const {
    return tensor.size(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
  // Sums over what is not among `kept`.
  void keep(const Labels& kept) {
    Ints summed;
    Labels left;
    for (size_t dim = 0; dim < labels.size(); ++dim)
      if (has(kept, labels[dim]))
        left.push_back(labels[dim]);
      else
        summed.push_back(static_cast<int64_t>(dim));
    if (summed.empty()) return;
    tensor = sum(tensor, OptionalInts(summed), false, tensor.dtype());
    labels = std::move(left);
  }
  // In this order, with dimensions of size 1 for labels that it lacks.
  Tensor arranged(const Labels& order) const {
    Ints dims;
    for (Label label : order)
      if (has(labels, label)) dims.push_back(std::find(labels.begin(), labels.end(), label) - labels.begin());
    Tensor result = permute(tensor, dims);
    for (size_t dim = 0; dim < order.size(); ++dim)
      if (!has(labels, order[dim])) result = unsqueeze(result, static_cast<int64_t>(dim));
    return result;
  }
};

// A letter that stands twice at one operand takes the diagonal.
Term without_repetition(Tensor tensor, Labels labels, std::string_view equation) {
  for (size_t first = 0; first < labels.size(); ++first)
    for (size_t second = first + 1; second < labels.size();) {
      if (labels[second] != labels[first]) {
        ++second;
        continue;
      }
      auto a = static_cast<int64_t>(first), b = static_cast<int64_t>(second);
      TENON_CHECK(same_size(tensor.size(a), tensor.size(b)),
                  "[einsum] subscript '{}' of '{}' is repeated for sizes {} and {} of one operand",
                  static_cast<char>(labels[first]), equation, tensor.size(a).str(), tensor.size(b).str());
      tensor = movedim(diagonal(tensor, 0, a, b), -1, a);
      labels.erase(labels.begin() + static_cast<ptrdiff_t>(second));
    }
  return {std::move(tensor), std::move(labels)};
}

SymInt product(const std::vector<SymInt>& sizes) {
  SymInt result = 1;
  for (const SymInt& size : sizes) result = result * size;
  return result;
}

// Of two sizes of one label; a size of 1 goes with any other.
SymInt common(const SymInt& a, const SymInt& b, Label label, std::string_view equation) {
  if (is_one(a)) return b;
  if (is_one(b) || same_size(a, b)) return a;
  fail("[einsum] operands of '{}' have sizes {} and {} for subscript {}", equation, a.str(), b.str(),
       label > 0 ? std::string(1, static_cast<char>(label)) : std::string(kEllipsis));
}

// The product of two, summed over what nobody needs any more.
Term contract(Term a, Term b, const Labels& needed, std::string_view equation) {
  Labels of_a = needed, of_b = needed;
  of_a.insert(of_a.end(), b.labels.begin(), b.labels.end());
  of_b.insert(of_b.end(), a.labels.begin(), a.labels.end());
  a.keep(of_a);
  b.keep(of_b);
  // Where one has a size of 1, the other is summed first: there is nothing to multiply along.
  auto sum_beside_one = [&](Term& wide, const Term& thin) {
    Labels kept;
    for (Label label : wide.labels)
      if (!has(thin.labels, label) || has(needed, label) || !is_one(thin.size(label)) || is_one(wide.size(label)))
        kept.push_back(label);
    wide.keep(kept);
  };
  sum_beside_one(a, b);
  sum_beside_one(b, a);
  Labels batch, summed, only_a, only_b;
  for (Label label : a.labels) (has(b.labels, label) ? has(needed, label) ? batch : summed : only_a).push_back(label);
  for (Label label : b.labels)
    if (!has(a.labels, label)) only_b.push_back(label);
  // What was summed on one side alone has a size of 1 on the other.
  auto is_done = [&](const Labels& list) {
    return std::all_of(list.begin(), list.end(), [&](Label label) { return has(needed, label); });
  };
  Labels result = batch;
  for (const Labels* list : {&only_a, &only_b})
    for (Label label : *list) result.push_back(label);
  if (summed.empty()) {
    Term made{a.arranged(result) * b.arranged(result), result};
    if (!is_done(result)) made.keep(needed);
    return made;
  }
  std::vector<SymInt> batches, of_sum, rows, columns, all;
  for (Label label : batch) batches.push_back(common(a.size(label), b.size(label), label, equation));
  for (Label label : summed) of_sum.push_back(common(a.size(label), b.size(label), label, equation));
  for (Label label : only_a) rows.push_back(a.size(label));
  for (Label label : only_b) columns.push_back(b.size(label));
  auto matrix = [&](const Term& term, const Labels& rest, const std::vector<SymInt>& sizes, bool sum_first) {
    Labels order = batch;
    const Labels &first = sum_first ? summed : rest, &second = sum_first ? rest : summed;
    order.insert(order.end(), first.begin(), first.end());
    order.insert(order.end(), second.begin(), second.end());
    SymInts whole;
    for (const SymInt& size : batches) whole.push_back(size);
    for (const SymInt& size : sum_first ? of_sum : sizes) whole.push_back(size);
    for (const SymInt& size : sum_first ? sizes : of_sum) whole.push_back(size);
    SymInt length = product(sizes), depth = product(of_sum);
    return reshape(expand(term.arranged(order), whole),
                   SymInts{product(batches), sum_first ? depth : length, sum_first ? length : depth});
  };
  Tensor made = bmm(matrix(a, only_a, rows, false), matrix(b, only_b, columns, true));
  SymInts sizes;
  for (const std::vector<SymInt>* list : {&batches, &rows, &columns})
    for (const SymInt& size : *list) sizes.push_back(size);
  Term term{reshape(made, sizes), result};
  if (!is_done(result)) term.keep(needed);
  return term;
}

Tensor einstein_sum(std::string_view text, const std::vector<Tensor>& tensors) {
  Equation equation = parse(text);
  TENON_CHECK(!tensors.empty() && equation.inputs.size() == tensors.size(), "[einsum] '{}' is for {} operands, got {}",
              text, equation.inputs.size(), tensors.size());
  std::vector<Term> terms;
  int counts[256] = {};
  size_t dots = 0;  // dimensions that an ellipsis stands for, at most
  for (size_t at = 0; at < tensors.size(); ++at) {
    TENON_CHECK(tensors[at].defined(), "[einsum] operand {} is an undefined tensor", at);
    Labels labels =
        labels_of(equation.inputs[at], static_cast<size_t>(tensors[at].dim()), text, fmt::format("operand {}", at));
    for (Label label : labels)
      if (label > 0)
        ++counts[label];
      else
        dots = std::max(dots, static_cast<size_t>(-label));
    terms.push_back(without_repetition(tensors[at], std::move(labels), text));
  }
  Labels output;
  if (equation.output) {
    size_t letters = 0;
    for (char letter : *equation.output) letters += letter != '.';
    bool has_dots = equation.output->find(kEllipsis) != std::string::npos;
    output = labels_of(*equation.output, letters + (has_dots ? dots : 0), text, "the result");
    for (size_t at = 0; at < output.size(); ++at) {
      Label label = output[at];
      if (label < 0) continue;
      TENON_CHECK(counts[label] > 0, "[einsum] subscript '{}' of the result of '{}' is at no operand",
                  static_cast<char>(label), text);
      TENON_CHECK(std::count(output.begin(), output.end(), label) == 1,
                  "[einsum] subscript '{}' stands twice in the result of '{}'", static_cast<char>(label), text);
    }
  } else {
    for (size_t left = dots; left > 0; --left) output.push_back(-static_cast<Label>(left));
    for (Label label = 'A'; label <= 'z'; ++label)
      if (counts[label] == 1) output.push_back(label);
  }
  Term result = std::move(terms[0]);
  for (size_t at = 1; at < terms.size(); ++at) {
    Labels needed = output;
    for (size_t later = at + 1; later < terms.size(); ++later)
      needed.insert(needed.end(), terms[later].labels.begin(), terms[later].labels.end());
    result = contract(std::move(result), std::move(terms[at]), needed, text);
  }
  result.keep(output);
  return result.arranged(output);
}

}  // namespace

OPS(einsum) {
  // The path, an order in which to contract, is for whoever computes one; operands are taken as they stand.
  // Example: einsum("ij,kj->ik", {x, x});
  op("einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor")
      .decompose([](std::string_view equation, const std::vector<Tensor>& tensors, const OptionalInts&) {
        return einstein_sum(equation, tensors);
      });
}

}  // namespace tenon::ops
