#include <gtest/gtest.h>
#include <tenon/support/intrusive.h>

#include <thread>
#include <unordered_set>

namespace tenon {
namespace {

struct Life {
  int released = 0;
  int destroyed = 0;
};

struct Node : Counted {
  explicit Node(Life* of, int number = 0) : life(of), value(number) {}
  ~Node() override { ++life->destroyed; }
  void release_resources() override {
    ++life->released;
    next = nullptr;
  }
  Life* life;
  int value;
  Ref<Node> next;
};

struct Leaf : Node {
  using Node::Node;
};

TEST(Ref, the_last_reference_destroys) {
  Life life;
  Ref<Node> first = make_ref<Node>(&life, 7);
  EXPECT_EQ(first->use_count(), 1u);
  {
    Ref<Node> second = first;
    EXPECT_EQ(first->use_count(), 2u);
    EXPECT_EQ(second->value, 7);
    EXPECT_EQ(first, second);
  }
  EXPECT_EQ(first->use_count(), 1u);
  EXPECT_EQ(life.destroyed, 0);
  first = nullptr;
  EXPECT_EQ(life.released, 1);
  EXPECT_EQ(life.destroyed, 1);
}

TEST(Ref, moving_and_assigning) {
  Life life;
  Ref<Node> first = make_ref<Node>(&life, 1);
  Ref<Node> second = std::move(first);
  EXPECT_FALSE(first);
  EXPECT_EQ(second->use_count(), 1u);
  Ref<Node>& same = second;
  second = same;
  EXPECT_EQ(second->use_count(), 1u);
  second = make_ref<Node>(&life, 2);
  EXPECT_EQ(life.destroyed, 1);
  EXPECT_EQ(second->value, 2);
}

TEST(Ref, converts_to_a_base) {
  Life life;
  Ref<Leaf> leaf = make_ref<Leaf>(&life, 3);
  Ref<Node> node = leaf;
  EXPECT_EQ(leaf->use_count(), 2u);
  Ref<Node> moved = std::move(leaf);
  EXPECT_FALSE(leaf);
  EXPECT_EQ(moved->use_count(), 2u);
  EXPECT_EQ(node, moved);
}

TEST(Ref, detach_and_adopt_keep_the_count) {
  Life life;
  Ref<Node> ref = make_ref<Node>(&life);
  Node* raw = ref.detach();
  EXPECT_FALSE(ref);
  EXPECT_EQ(life.destroyed, 0);
  Ref<Node> again = Ref<Node>::adopt(raw);
  EXPECT_EQ(again->use_count(), 1u);
  again = nullptr;
  EXPECT_EQ(life.destroyed, 1);
}

TEST(Ref, hashes_by_identity) {
  Life life;
  Ref<Node> a = make_ref<Node>(&life), b = make_ref<Node>(&life);
  std::unordered_set<Ref<Node>> seen{a, b, a};
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_TRUE(seen.count(b));
}

TEST(WeakRef, locks_while_the_object_lives) {
  Life life;
  Ref<Node> strong = make_ref<Node>(&life, 5);
  WeakRef<Node> weak(strong);
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(weak.lock()->value, 5);
  EXPECT_EQ(strong->use_count(), 1u);
  EXPECT_EQ(weak.address(), strong.get());
}

TEST(WeakRef, resources_go_with_the_last_strong_reference_and_memory_with_the_last_weak_one) {
  Life life, inner;
  Ref<Node> strong = make_ref<Node>(&life);
  strong->next = make_ref<Node>(&inner);
  WeakRef<Node> weak(strong);
  WeakRef<Node> copy = weak;
  strong = nullptr;
  EXPECT_EQ(life.released, 1);
  EXPECT_EQ(life.destroyed, 0);
  EXPECT_EQ(inner.destroyed, 1);
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(weak.lock());
  weak = WeakRef<Node>();
  EXPECT_EQ(life.destroyed, 0);
  copy = WeakRef<Node>();
  EXPECT_EQ(life.destroyed, 1);
  EXPECT_EQ(life.released, 1);
}

TEST(WeakRef, an_empty_one_is_expired) {
  WeakRef<Node> weak;
  EXPECT_TRUE(weak.expired());
  EXPECT_FALSE(weak.lock());
  EXPECT_TRUE(WeakRef<Node>(Ref<Node>()).expired());
}

TEST(WeakRef, locking_races_with_the_last_release) {
  for (int round = 0; round < 200; ++round) {
    Life life;
    Ref<Node> strong = make_ref<Node>(&life, 9);
    WeakRef<Node> weak(strong);
    std::jthread locker([weak = std::move(weak)] {
      while (Ref<Node> ref = weak.lock()) EXPECT_EQ(ref->value, 9);
    });
    strong = nullptr;
    locker.join();
    EXPECT_EQ(life.destroyed, 1);
  }
}

}  // namespace
}  // namespace tenon
