// Loop schedules as text, and which are refused.
#include <gtest/gtest.h>

#include "schedule/cpu/choose.h"

namespace tenon::schedule {
namespace {

Nest row_sum() {
  return parse_nest(R"(nest()
  axis a0 kept 512
  axis a1 reduced 40000
  stage 0 full work 1 reductions 1 ordered 1
  load v0 f32 stage 0 [40000, 1]
  store v1 f32 stage 0 kept [1, 0]
)");
}

Nest transpose() {
  return parse_nest(R"(nest(s0, s1)
  axis a0 kept s0 = 1000
  axis a1 kept s1 = 2000
  stage 0 full work 0 reductions 0 ordered 0
  load v0 f32 stage 0 [1, s0 = 1000]
  store v1 f32 stage 0 [s1 = 2000, 1]
)");
}

Nest batch_sum() {
  return parse_nest(R"(nest()
  axis a0 kept 64
  axis a1 reduced 32
  axis a2 reduced 3136
  stage 0 full work 1 reductions 1 ordered 1
  load v0 f32 stage 0 [3136, 200704, 1]
  store v1 f32 stage 0 kept [1, 0, 0]
)");
}

Nest scaled_rows() {
  return parse_nest(R"(nest()
  axis a0 kept 510
  axis a1 kept 128
  stage 0 full work 1 reductions 0 ordered 0
  load v0 f32 stage 0 [128, 1]
  load v1 f32 stage 0 [0, 1]
  store v2 f32 stage 0 [128, 1]
)");
}

Nest softmax_rows() {
  return parse_nest(R"(nest()
  axis a0 kept 2
  axis a1 reduced 100000
  stage 0 full work 1 reductions 1 ordered 0
  stage 1 full work 16 reductions 1 ordered 1
  stage 2 full work 17 reductions 0 ordered 0
  load v0 f32 stage 0 [100000, 1]
  load v0 f32 stage 1 [100000, 1]
  load v0 f32 stage 2 [100000, 1]
  store v1 f32 stage 2 [100000, 1]
  reused v5 stage 1 work 15
)");
}

std::string why_not(const Nest& nest, std::string_view text) {
  LoopSchedule schedule = parse_loop_schedule(text);
  EXPECT_EQ(to_string(schedule), text);
  return legal(nest, schedule).why();
}

TEST(LoopSchedule, NestsAreReadBackAsTheyWerePrinted) {
  for (const Nest& nest : {row_sum(), transpose(), batch_sum(), scaled_rows(), softmax_rows()})
    EXPECT_EQ(to_string(parse_nest(to_string(nest))), to_string(nest));
  EXPECT_EQ(transpose().axes[1].size, 2000);
  EXPECT_EQ(batch_sum().kept_count(), 1u);
}

TEST(LoopSchedule, LegalOnes) {
  for (const char* text : {"a0, a1", "parallel a0, vector a1", "parallel vector a0, a1", "parallel a0, a0:8, vector a1",
                           "parallel a1, parallel a0, vector a1:16384", "parallel a1, vector a0, a1:2048"})
    EXPECT_EQ(why_not(row_sum(), text), "") << text;
  for (const char* text : {"a1, a0", "parallel a0, parallel a1, a0:32, vector a1:64",
                           "parallel a1, vector a0, stream v1", "a0, a0:64, a1, vector a0:16"})
    EXPECT_EQ(why_not(transpose(), text), "") << text;
  for (const char* text : {"a0, a1, vector a2", "parallel a1, parallel a0, a1:4, vector a2", "vector a0, a1, a2"})
    EXPECT_EQ(why_not(batch_sum(), text), "") << text;
  EXPECT_EQ(why_not(transpose(), "parallel a0, vector a1, unroll a0:64, stream v1"), "");
  EXPECT_EQ(why_not(softmax_rows(), "parallel a0, vector a1, keep v5"), "");
  EXPECT_EQ(why_not(scaled_rows(), "parallel a0, unroll a0:2, vector a1, stream v2"), "");
}

TEST(LoopSchedule, RefusalsSayWhy) {
  const struct {
    Nest nest;
    std::string_view schedule, why;
  } cases[] = {
      {row_sum(), "parallel a0", "a1 has no loop"},
      {row_sum(), "parallel a0, vector a1, a2", "there is no a2"},
      {row_sum(), "a0, parallel a1, a1:1024", "a1 is parallel inside a loop that is not"},
      {row_sum(), "vector a0, vector a1", "2 loops have lanes"},
      {row_sum(), "a1, a0", "a0 is kept and stands inside a reduced loop"},
      {row_sum(), "a0, a1, a1:1024", "a1 is reduced: only pieces for threads are cut off it"},
      {row_sum(), "parallel a1, a0, vector a1:1000",
       "a1:1000 is not 1024 times a power of two, so the tree of the sum would change"},
      {row_sum(), "parallel a1, a0, vector a1:3072",
       "a1:3072 is not 1024 times a power of two, so the tree of the sum would change"},
      {row_sum(), "parallel a1, vector a0", "a1 is split into threads' pieces and one loop over each"},
      {row_sum(), "parallel vector a1, a0", "a0 stands inside of the lanes along a1"},
      {row_sum(), "parallel a0, a1, stream v0", "v0 is read: it does not stream"},
      {row_sum(), "unroll a0:4, vector a1", "a nest with reductions takes no rows together"},
      {batch_sum(), "a0, a2, a1", "sums run along a2 before a1, and the order is part of them"},
      {batch_sum(), "a0, vector a1, a2", "a1 is not the innermost reduced axis: no lanes along it"},
      {batch_sum(), "parallel a2, a0, a1, a2:1024", "a2 is not the outermost reduced axis: it is not split"},
      {batch_sum(), "parallel a1, a0, a1:6, vector a2",
       "a1:6 is not 1 times a power of two, so the tree of the sum would change"},
      {transpose(), "a0:32, a1, a0", "the tile a0:32 stands outside its rest"},
      {transpose(), "a0, a0, a1", "a0 has two loops over the rest"},
      {transpose(), "a0, a1, a0:-4", "a0 has a tile of -4"},
      {transpose(), "parallel a0, parallel a0:32, a1",
       "a0:32 is a tile, and the last one may be smaller: it is no part of a collapsed loop"},
      {transpose(), "vector a1, a0", "a0 stands inside of the lanes along a1"},
      {transpose(), "a0, parallel vector a1", "a1 is parallel inside a loop that is not"},
      {transpose(), "parallel a0, parallel vector a1", "a1 is parallel and vector, but not the outermost loop"},
      {transpose(), "a0, unroll a0:2, vector a1", "unroll a0:2 does not divide s0"},
      {scaled_rows(), "a0, unroll a0:4, vector a1", "unroll a0:4 does not divide 510"},
      {scaled_rows(), "a0, unroll a0:10, vector a1", "unroll a0:10: expected 2 to 8 copies"},
      {scaled_rows(), "a0, vector a1, unroll a1:16", "lanes along a1 do not walk along it, too"},
      {scaled_rows(), "a0, unroll a0:2, a1", "unroll a0 does not stand next to the lanes"},
      {softmax_rows(), "parallel a0, vector a1, keep v1", "v1 is not used again: it is not kept in scratch"},
      {softmax_rows(), "parallel vector a0, a1, keep v5", "v5 is kept a row at a time, and lanes go across rows"},
      {softmax_rows(), "parallel a1, a0, vector a1:1024, keep v5", "v5 is kept a row at a time, and rows are split"},
      {softmax_rows(), "parallel a1, a0, vector a1:1024", "stage 1 needs the whole sum over a1: it is not split"},
  };
  for (const auto& each : cases) EXPECT_EQ(why_not(each.nest, each.schedule), each.why) << each.schedule;
}

TEST(LoopSchedule, TextThatIsNone) {
  for (const char* text : {"b0", "vector", "a0:x", "a0 a1", "parallel a"})
    EXPECT_THROW(parse_loop_schedule(text), Error) << text;
}

TEST(ChooseOnCpu, CandidatesAreFewAndLegal) {
  for (const Nest& nest : {row_sum(), transpose(), batch_sum(), scaled_rows(), softmax_rows()}) {
    std::vector<LoopSchedule> all = cpu::candidates(nest);
    EXPECT_FALSE(all.empty());
    EXPECT_LE(all.size(), 64u);
    for (const LoopSchedule& each : all) EXPECT_EQ(legal(nest, each).why(), "") << to_string(each);
  }
}

// The gradient of a bias beside that of an activation: columns are summed, and what they are sums of is stored. Lanes
// along the columns would only pay if very many threads shared them.
TEST(ChooseOnCpu, ColumnsThatAreStoredTooGoAlongMemory) {
  for (int rows : {16, 64, 128, 512, 4096})
    for (int columns : {64, 256, 1024}) {
      Nest nest = parse_nest(fmt::format(R"(nest()
  axis a0 kept {0}
  axis a1 reduced {1}
  stage 0 full work 2 reductions 1 ordered 1
  load v0 f32 stage 0 [1, {0}]
  load v1 f32 stage 0 [1, {0}]
  store v2 f32 stage 0 [1, {0}]
  store v3 f32 stage 0 kept [1, 0]
)",
                                         columns, rows));
      EXPECT_NE(to_string(cpu::choose(nest)).find("vector a0"), std::string::npos)
          << rows << " rows of " << columns << ": " << to_string(cpu::choose(nest));
    }
}

TEST(ChooseOnCpu, LanesGoAlongMemory) {
  EXPECT_EQ(to_string(cpu::choose(row_sum())), "parallel a0, vector a1");
  EXPECT_EQ(to_string(cpu::choose(batch_sum())), "parallel a0, a1, vector a2");
  Nest columns = row_sum();
  columns.accesses[0].step = {1, 512};
  EXPECT_EQ(to_string(cpu::choose(columns)).substr(0, 8), "parallel");
  EXPECT_NE(to_string(cpu::choose(columns)).find("vector a0"), std::string::npos) << to_string(cpu::choose(columns));
}

TEST(ChooseOnCpu, ThreadsShareLongSums) {
  Nest few = row_sum();
  few.axes[0].size = 2;
  few.axes[1].size = 1 << 25;
  EXPECT_EQ(cpu::choose(few).split_axis(few), 1) << to_string(cpu::choose(few));
  EXPECT_TRUE(cpu::may_lack_threads(softmax_rows()));
  EXPECT_FALSE(cpu::may_lack_threads(few));
}

// Rows of a stream with a row that is the same for all of them: four at a time, or two, if that divides their number
// and leaves enough for threads to share.
TEST(ChooseOnCpu, RowsThatShareARowAreTakenTogether) {
  for (auto [rows, taken] : {std::pair(512, 4), {256, 4}, {252, 2}, {130, 2}, {257, 1}, {8, 1}}) {
    Nest nest = scaled_rows();
    nest.axes[0].size = rows;
    nest.axes[0].extent = nest.pool->constant(rows);
    auto copies = [&](const std::vector<ValueId>& streaming) {
      for (const Piece& piece : cpu::choose(nest, streaming).pieces)
        if (piece.role == Role::Unroll) return piece.factor;
      return int64_t{1};
    };
    EXPECT_EQ(copies({2}), taken) << rows;
    EXPECT_EQ(copies({}), 1) << rows;
  }
}

}  // namespace
}  // namespace tenon::schedule
