#include <gtest/gtest.h>
#include <tenon/support/small_vector.h>

#include <random>
#include <stdexcept>

namespace tenon {
namespace {

// Counts its living instances, and throws when the copy of the given number is made.
struct Tracked {
  static inline int alive = 0;
  static inline int copies_until_throw = -1;
  Tracked(int number = 0) : value(number) { ++alive; }
  Tracked(const Tracked& other) : value(other.value) {
    if (copies_until_throw >= 0 && copies_until_throw-- == 0) throw std::runtime_error("copy");
    ++alive;
  }
  Tracked(Tracked&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  Tracked& operator=(const Tracked&) = default;
  Tracked& operator=(Tracked&& other) noexcept {
    value = std::exchange(other.value, -1);
    return *this;
  }
  ~Tracked() { --alive; }
  bool operator==(const Tracked& other) const { return value == other.value; }
  int value;
};

using Vector = SmallVector<Tracked, 3>;

std::vector<int> values(const Vector& vector) {
  std::vector<int> result;
  for (const Tracked& item : vector) result.push_back(item.value);
  return result;
}

struct SmallVectorTest : testing::Test {
  ~SmallVectorTest() override {
    EXPECT_EQ(Tracked::alive, 0);
    Tracked::copies_until_throw = -1;
  }
};

TEST_F(SmallVectorTest, construction) {
  EXPECT_TRUE(Vector().empty());
  EXPECT_EQ(values({1, 2}), (std::vector{1, 2}));
  EXPECT_EQ(values({1, 2, 3, 4, 5}), (std::vector{1, 2, 3, 4, 5}));
  EXPECT_EQ(values(Vector(4, Tracked(7))), (std::vector{7, 7, 7, 7}));
  std::vector<Tracked> source{1, 2, 3, 4};
  EXPECT_EQ(values(Vector(std::span<const Tracked>(source))), (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(values(Vector(source.begin() + 1, source.end())), (std::vector{2, 3, 4}));
}

TEST_F(SmallVectorTest, stays_inside_up_to_its_size) {
  Vector vector{1, 2, 3};
  auto inside = [&] {
    auto* at = reinterpret_cast<std::byte*>(vector.data());
    auto* self = reinterpret_cast<std::byte*>(&vector);
    return at >= self && at < self + sizeof(vector);
  };
  EXPECT_TRUE(inside());
  vector.push_back(4);
  EXPECT_FALSE(inside());
}

// The same random operations on a std::vector are the reference.
TEST_F(SmallVectorTest, behaves_as_std_vector) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Vector vector;
    std::vector<Tracked> reference;
    for (int step = 0; step < 30; ++step) {
      size_t at = reference.empty() ? 0 : random() % reference.size();
      int number = static_cast<int>(random() % 100);
      switch (random() % 7) {
        case 0:
          vector.push_back(number);
          reference.push_back(number);
          break;
        case 1:
          if (!reference.empty()) {
            vector.push_back(vector[at]);
            reference.push_back(Tracked(reference[at]));
          }
          break;
        case 2:
          vector.insert(vector.begin() + at, number);
          reference.insert(reference.begin() + at, number);
          break;
        case 3:
          if (!reference.empty()) {
            vector.erase(vector.begin() + at);
            reference.erase(reference.begin() + at);
          }
          break;
        case 4:
          vector.resize(number % 9, Tracked(number));
          reference.resize(number % 9, Tracked(number));
          break;
        case 5: {
          Vector other = vector;
          EXPECT_EQ(other, vector);
          vector = std::move(other);
          break;
        }
        default:
          if (!reference.empty()) {
            vector.pop_back();
            reference.pop_back();
          }
      }
      ASSERT_TRUE(std::equal(vector.begin(), vector.end(), reference.begin(), reference.end()));
    }
  }
}

TEST_F(SmallVectorTest, copies_and_moves_between_all_sizes) {
  for (int from = 0; from < 6; ++from) {
    for (int to = 0; to < 6; ++to) {
      Vector source(from, Tracked(1)), expected = source;
      Vector target(to, Tracked(2));
      target = source;
      EXPECT_EQ(target, expected);
      EXPECT_EQ(source, expected);
      Vector moved(to, Tracked(3));
      moved = std::move(source);
      EXPECT_EQ(moved, expected);
      EXPECT_TRUE(source.empty());
      source.push_back(4);  // usable again
      EXPECT_EQ(values(source), std::vector{4});
      Vector& same = moved;
      moved = same;
      EXPECT_EQ(moved, expected);
    }
  }
}

TEST_F(SmallVectorTest, growing_by_an_element_of_its_own) {
  Vector vector{5, 6, 7};
  vector.resize(40, vector[1]);
  EXPECT_EQ(vector[0].value, 5);
  EXPECT_EQ(vector[39].value, 6);
  Vector full{1, 2, 3};
  full.push_back(full[0]);
  EXPECT_EQ(values(full), (std::vector{1, 2, 3, 1}));
}

TEST_F(SmallVectorTest, a_throwing_element_leaks_nothing) {
  for (int at = 0; at < 6; ++at) {
    Vector source{1, 2, 3, 4, 5};
    Tracked::copies_until_throw = at;
    try {
      Vector copy = source;
      EXPECT_EQ(copy.size(), 5u);
    } catch (const std::runtime_error&) {
    }
    Tracked::copies_until_throw = -1;
  }
}

TEST_F(SmallVectorTest, spans_and_comparison) {
  SmallVector<int64_t, 4> sizes{2, 3};
  std::span<const int64_t> span = sizes;
  EXPECT_EQ(span.size(), 2u);
  EXPECT_EQ(span[1], 3);
  EXPECT_EQ(sizes.front(), 2);
  EXPECT_EQ(sizes.back(), 3);
  EXPECT_NE(sizes, (SmallVector<int64_t, 4>{2, 3, 4}));
  EXPECT_NE(sizes, (SmallVector<int64_t, 4>{2, 4}));
}

TEST_F(SmallVectorTest, holds_what_can_only_be_moved) {
  SmallVector<std::unique_ptr<int>, 2> vector;
  for (int i = 0; i < 5; ++i) vector.push_back(std::make_unique<int>(i));
  SmallVector<std::unique_ptr<int>, 2> moved = std::move(vector);
  EXPECT_EQ(*moved[4], 4);
}

}  // namespace
}  // namespace tenon
