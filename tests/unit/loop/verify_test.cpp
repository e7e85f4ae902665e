#include <tenon/loop/builder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::loop {
namespace {

using sym::Expr;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A kernel that uses most of what there is; each test breaks one rule of a fresh copy.
struct Sample {
  Kernel kernel;
  Loop* rows;     // parallel
  Loop* sum;      // reduction vector
  Loop* columns;  // vector

  Op* find(Block& block, OpCode code) {
    for (Statement& statement : block) {
      if (Op* op = std::get_if<Op>(&statement); op && op->code == code) return op;
    }
    return nullptr;
  }
};

Sample make_sample() {
  Builder b("sample");
  const int x = b.buffer("x", kFloat32, BufferRole::In), at = b.buffer("at", kInt64, BufferRole::In);
  const int out = b.buffer("out", kFloat32, BufferRole::Out),
            temporary = b.buffer("t", kFloat32, BufferRole::Temporary);
  const int scale = b.scalar("scale", kFloat64);
  const Expr n = b.integer("n"), m = b.integer("m");
  b.loop(n, {.parallel = true}, [&](Expr i) {
    Lane total;
    b.loop(m, {.vector = true, .reduction = true},
           [&](Expr j) { total = b.reduce(ReduceKind::Sum, b.load(x, i * m + j)); });
    const Lane index = b.load(at, i);
    b.check(index < b.index(m), "too large");
    const Expr bound = b.bind_index(minimum(index, b.index(m)));
    b.loop(m, {.vector = true}, [&](Expr j) {
      const Lane value = b.load(x, bound + j) * total * cast(b.parameter(scale), kFloat32);
      b.store(temporary, i * m + j, value);
      b.store(out, i * m + j, select(value > 0.0, value, b.load(temporary, i * m + j)));
    });
  });
  Sample sample{b.finish(), nullptr, nullptr, nullptr};
  sample.rows = std::get<1>(sample.kernel.body[0]).get();
  sample.sum = std::get<1>(sample.rows->body[0]).get();
  for (Statement& statement : sample.rows->body) {
    if (statement.index() == 1) sample.columns = std::get<1>(statement).get();
  }
  return sample;
}

void expect_broken(const Kernel& kernel, const std::string& rule, const std::string& detail) {
  try {
    verify(kernel);
    ADD_FAILURE() << "expected the rule \"" << rule << "\" to be broken";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("breaks the rule \"" + rule + "\""), HasSubstr(detail)));
    EXPECT_THAT(error.what(), HasSubstr("kernel " + kernel.name + "(")) << "the text of the kernel";
  }
}

TEST(Verify, AcceptsTheSample) { EXPECT_NO_THROW(verify(make_sample().kernel)); }

TEST(Verify, OperandDtypes) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Mul)->dtype = kFloat64;
  expect_broken(s.kernel, "operand dtypes", "to be float64, got float32");
}

TEST(Verify, OperandCounts) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Cast)->operands[2] = 0;
  expect_broken(s.kernel, "operand counts", "expected 1 operands");
}

TEST(Verify, DefinedDtypes) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Mul)->code = OpCode::And;
  expect_broken(s.kernel, "dtypes that the operation is defined for", "not for float32");
}

TEST(Verify, ComparisonsGiveBool) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Gt)->dtype = kFloat32;
  expect_broken(s.kernel, "result dtypes", "expected bool, got float32");
}

TEST(Verify, SelectsByBool) {
  Sample s = make_sample();
  Op* select = s.find(s.columns->body, OpCode::Select);
  select->operands[0] = select->operands[1];
  expect_broken(s.kernel, "operand dtypes", "to be bool, got float32");
}

TEST(Verify, OperandsExist) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Mul)->operands[0] = 1000;
  expect_broken(s.kernel, "operands exist", "there is no value %1000");
}

TEST(Verify, OperandsAreDefinedBefore) {
  Sample s = make_sample();
  Op* mul = s.find(s.columns->body, OpCode::Mul);
  mul->operands[0] = mul->result;
  expect_broken(s.kernel, "operands are defined before", "is not yet defined");
}

TEST(Verify, ReductionsAreInvisibleInTheirLoop) {
  Sample s = make_sample();
  Op op{.code = OpCode::Neg, .dtype = kFloat32};
  op.operands[0] = s.find(s.sum->body, OpCode::Reduce)->result;
  op.result = s.kernel.value_count++;
  s.sum->body.push_back(op);
  expect_broken(s.kernel, "operands are visible", "a reduction whose loop has not ended");
}

TEST(Verify, ValuesEndWithTheirLoop) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Mul)->operands[0] = s.find(s.sum->body, OpCode::Load)->result;
  expect_broken(s.kernel, "operands are visible", "belongs to a loop that ended");
}

TEST(Verify, ValuesAreDefinedOnce) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Mul)->result = s.find(s.sum->body, OpCode::Load)->result;
  expect_broken(s.kernel, "values are defined once", "is defined before");
}

TEST(Verify, ResultsAreNumbered) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Mul)->result = kNone;
  expect_broken(s.kernel, "results", "expected a value below");
  Sample t = make_sample();
  t.find(t.columns->body, OpCode::Store)->result = t.kernel.value_count++;
  expect_broken(t.kernel, "results", "it has none");
}

TEST(Verify, ReductionsStandInReductionLoops) {
  Sample s = make_sample();
  s.sum->reduction = false;
  expect_broken(s.kernel, "reductions stand in reduction loops", "reduce sum");
}

TEST(Verify, ReductionsHaveDtypes) {
  Sample s = make_sample();
  s.find(s.sum->body, OpCode::Reduce)->reduce = ReduceKind::Any;
  expect_broken(s.kernel, "dtypes that the operation is defined for", "reduce any");
}

TEST(Verify, OneVectorLoopOnAPath) {
  Sample s = make_sample();
  s.rows->vector = true;
  expect_broken(s.kernel, "one vector loop on a path", "a loop around it is vector");
}

TEST(Verify, ParallelLoopsAreOutermost) {
  Sample s = make_sample();
  s.columns->parallel = true;
  expect_broken(s.kernel, "a parallel loop is outermost and alone", "vector i");
}

TEST(Verify, ParallelLoopsAreAlone) {
  Sample s = make_sample();
  Op op{.code = OpCode::Index, .dtype = kInt64};
  op.index = s.kernel.integers[0];
  op.result = s.kernel.value_count++;
  s.kernel.body.push_back(op);
  expect_broken(s.kernel, "a parallel loop is outermost and alone", "the kernel's only statement");
}

TEST(Verify, ParallelLoopsAreNoReductions) {
  Sample s = make_sample();
  s.rows->reduction = true;
  expect_broken(s.kernel, "a parallel loop is no reduction", "split between threads");
}

TEST(Verify, IndicesEndWithTheirLoop) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Load)->index = s.sum->index;
  expect_broken(s.kernel, "symbols are bound", "is used after the end of its scope");
}

TEST(Verify, IntegersAreDeclared) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Load)->index = s.kernel.pool->symbol("stranger");
  expect_broken(s.kernel, "symbols are bound", "stranger is no integer parameter");
  Sample t = make_sample();
  t.rows->extent = t.kernel.pool->symbol("stranger");
  expect_broken(t.kernel, "symbols are bound", "stranger is no integer parameter");
  Sample u = make_sample();
  u.kernel.buffers[0].extent = u.rows->index;
  expect_broken(u.kernel, "symbols are bound", "i0 is no integer parameter");
}

TEST(Verify, BoundSymbolsAreUsedAfterTheirBinding) {
  Sample s = make_sample();
  s.find(s.sum->body, OpCode::Load)->index = s.find(s.rows->body, OpCode::BindIndex)->index;
  expect_broken(s.kernel, "symbols are bound", "not bound before");
}

TEST(Verify, SymbolsAreBoundOnce) {
  Sample s = make_sample();
  s.find(s.rows->body, OpCode::BindIndex)->index = s.rows->index;
  expect_broken(s.kernel, "symbols are bound once", "i0 is bound before");
  Sample t = make_sample();
  t.columns->index = t.kernel.integers[0];
  expect_broken(t.kernel, "symbols are bound once", "or is an integer parameter");
}

TEST(Verify, ExpressionsAreDefined) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Load)->index = Expr();
  expect_broken(s.kernel, "expressions are defined", "load x[?]");
}

TEST(Verify, ExpressionsAreOfOnePool) {
  sym::ExprPool other;
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Load)->index = other.constant(0);
  expect_broken(s.kernel, "one pool", "is of another pool");
}

TEST(Verify, NoStoresToInputs) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Store)->buffer = 0;
  expect_broken(s.kernel, "no stores to inputs", "x is in");
}

TEST(Verify, LoadsOfWhatWasStored) {
  Sample s = make_sample();
  s.find(s.sum->body, OpCode::Load)->buffer = 2;
  expect_broken(s.kernel, "loads of what was stored", "out is out and nothing was stored to it before");
  Sample t = make_sample();
  t.find(t.sum->body, OpCode::Load)->buffer = 3;
  expect_broken(t.kernel, "loads of what was stored", "t is temporary");
}

TEST(Verify, BuffersExist) {
  Sample s = make_sample();
  s.find(s.sum->body, OpCode::Load)->buffer = 9;
  expect_broken(s.kernel, "buffers exist", "there is no buffer 9");
}

TEST(Verify, AccessDtypes) {
  Sample s = make_sample();
  s.kernel.buffers[0].dtype = kFloat64;
  expect_broken(s.kernel, "access dtypes", "expected float64 for a buffer of float64, got float32");
}

TEST(Verify, NoNarrowFloatsInArithmetic) {
  Sample s = make_sample();
  s.find(s.sum->body, OpCode::Load)->dtype = kFloat16;
  expect_broken(s.kernel, "no narrow floats in arithmetic", "the value is float16");
  Sample t = make_sample();
  t.kernel.scalars[0].dtype = kBFloat16;
  expect_broken(t.kernel, "no narrow floats in arithmetic", "the scalar is bfloat16");
}

TEST(Verify, RoundingCasts) {
  Sample s = make_sample();
  Op* cast = s.find(s.columns->body, OpCode::Cast);
  cast->has_rounding = true;
  cast->rounded = kFloat64;
  expect_broken(s.kernel, "rounding casts", "got float32 to float64");
}

TEST(Verify, ChecksHaveMessages) {
  Sample s = make_sample();
  s.find(s.rows->body, OpCode::Check)->parameter = 1;
  expect_broken(s.kernel, "checks have messages", "there is no message 1");
}

TEST(Verify, ParametersExist) {
  Sample s = make_sample();
  s.find(s.columns->body, OpCode::Parameter)->parameter = 4;
  expect_broken(s.kernel, "parameters exist", "there is no scalar parameter 4");
  Sample t = make_sample();
  t.kernel.scalars[0].dtype = kInt64;
  expect_broken(t.kernel, "parameter dtypes", "the parameter is int64");
}

TEST(Verify, ConstantsFitTheirDtype) {
  const auto with_constant = [](Dtype dtype, Number number) {
    Builder b("k");
    b.constant(1, dtype);
    Kernel kernel = b.finish();
    std::get<Op>(kernel.body[0]).number = number;
    return kernel;
  };
  const std::string rule = "constants fit their dtype";
  expect_broken(with_constant(kFloat32, Number::of(0.1)), rule, "0.1 is not a float32");
  expect_broken(with_constant(kFloat32, Number::of(int64_t{1})), rule, "a integer number for float32");
  expect_broken(with_constant(kUInt8, Number::of(int64_t{256})), rule, "[0, 255]");
  expect_broken(with_constant(kInt8, Number::of(int64_t{-129})), rule, "[-128, 127]");
  expect_broken(with_constant(kBool, Number::of(int64_t{2})), rule, "[0, 1]");
  EXPECT_NO_THROW(verify(with_constant(kInt64, Number::of(INT64_MIN))));
}

TEST(Verify, Declarations) {
  Sample s = make_sample();
  s.kernel.buffers[1].name = "x";
  expect_broken(s.kernel, "names are unique", "it is declared twice");
  Sample t = make_sample();
  t.kernel.buffers[1].name = "a b";
  expect_broken(t.kernel, "names are plain", "`a b`");
  Sample u = make_sample();
  std::swap(u.kernel.buffers[2], u.kernel.buffers[3]);
  expect_broken(u.kernel, "temporaries come last", "an argument follows a temporary");
  Sample v = make_sample();
  v.kernel.integers[1] = v.kernel.integers[0];
  expect_broken(v.kernel, "names are unique", "the integer parameter is declared twice");
  Sample w = make_sample();
  w.kernel.integers[1] = w.kernel.pool->constant(3);
  expect_broken(w.kernel, "integer parameters are symbols", "got 3");
  Sample y = make_sample();
  y.kernel.buffers[0].streaming = true;
  expect_broken(y.kernel, "only outputs stream", "its role is in");
}

}  // namespace
}  // namespace tenon::loop
