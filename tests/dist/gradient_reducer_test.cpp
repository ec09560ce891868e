#include "dist/collectives/gradient_reducer.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>

#include "core/error.hpp"
#include "core/random.hpp"
#include "dist/collectives/communicator.hpp"
#include "dist/collectives/mpi_session.hpp"
#include "dist/collectives/reduction_tree.hpp"

namespace tpudist {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Row = std::vector<float>;

// A row whose sums depend on the order of addition: magnitudes from 1e-6 to 1e6, and now and then a
// denormal, a negative zero, an infinity or a NaN.
Row leaf_row(std::uint64_t seed, int member, int leaf, std::int64_t length) {
  CounterRng rng(mix_key({seed, static_cast<std::uint64_t>(member), std::uint64_t(leaf)}));
  Row row(length);
  for (float& value : row) {
    const std::uint64_t kind = rng.below(200);
    value = static_cast<float>(rng.normal() * std::pow(10.0, rng.uniform(-6, 6)));
    if (kind < 10) value = -0.0f;
    if (kind >= 10 && kind < 20) value = std::bit_cast<float>(std::uint32_t(rng.below(1 << 20)));
    if (kind == 20) value = std::numeric_limits<float>::infinity();
    if (kind == 21) value = std::numeric_limits<float>::quiet_NaN();
  }
  return row;
}

// What the tree must give, written down as plainly as possible: the sum over leaves [first, first +
// width), where absent leaves are left out.
std::optional<Row> tree_sum(const LeafOwners& owners, int member, int first, int width,
                            std::uint64_t seed, std::int64_t length) {
  if (first >= owners.leaves) return {};
  if (width == 1) {
    if (owners.of(member, first) < 0) return {};
    return leaf_row(seed, member, first, length);
  }
  const int half = width / 2;
  std::optional<Row> left = tree_sum(owners, member, first, half, seed, length);
  const std::optional<Row> right = tree_sum(owners, member, first + half, half, seed, length);
  if (!left) return right;
  if (right) {
    for (std::int64_t i = 0; i < length; ++i) (*left)[i] = (*left)[i] + (*right)[i];
  }
  return left;
}

Row expected_sums(const LeafOwners& owners, std::uint64_t seed, std::int64_t length) {
  Row sums;
  const int width = static_cast<int>(std::bit_ceil(static_cast<unsigned>(owners.leaves)));
  for (int member = 0; member < owners.members; ++member) {
    const Row row = tree_sum(owners, member, 0, width, seed, length).value_or(Row(length, 0.0f));
    sums.insert(sums.end(), row.begin(), row.end());
  }
  return sums;
}

// Bits, but every NaN as the same one: which operand's payload survives is the processor's choice.
std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> all;
  for (const float value : values) {
    all.push_back(std::isnan(value) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(value));
  }
  return all;
}

LeafOwners random_owners(CounterRng& rng, int members, int leaves, int ranks, double absent) {
  LeafOwners owners{members, leaves, {}};
  for (int i = 0; i < members * leaves; ++i) {
    owners.owner.push_back(rng.uniform() < absent ? -1 : static_cast<int>(rng.below(ranks)));
  }
  return owners;
}

// Leaf by leaf in contiguous shares.
LeafOwners even_owners(int members, int leaves, int ranks) {
  LeafOwners owners{members, leaves, {}};
  for (int i = 0; i < members * leaves; ++i) owners.owner.push_back(i % leaves * ranks / leaves);
  return owners;
}

struct Leaf {
  int member, leaf;
};

std::vector<Leaf> own_leaves(const LeafOwners& owners, int rank) {
  std::vector<Leaf> own;
  for (int i = 0; i < std::ssize(owners.owner); ++i) {
    if (owners.owner[i] == rank) own.push_back({i / owners.leaves, i % owners.leaves});
  }
  return own;
}

class ReducerTest : public ::testing::Test {
 protected:
  // One step in which this rank adds its leaves in an order drawn from the seed.
  std::span<const float> reduce(GradientReducer& reducer, const LeafOwners& owners,
                                std::uint64_t seed, std::int64_t length) {
    std::vector<Leaf> own = own_leaves(owners, world_->rank());
    CounterRng(mix_key({seed, 99, std::uint64_t(world_->rank())})).shuffle(std::span(own));
    reducer.begin(owners);
    for (const Leaf& leaf : own) {
      reducer.add(leaf.member, leaf.leaf, leaf_row(seed, leaf.member, leaf.leaf, length));
    }
    return reducer.finalize();
  }

  void expect_tree(GradientReducer& reducer, const LeafOwners& owners, std::uint64_t seed,
                   std::int64_t length) {
    const std::span<const float> sums = reduce(reducer, owners, seed, length);
    EXPECT_EQ(bits(sums), bits(expected_sums(owners, seed, length)));
  }

  int ranks() const { return world_->size(); }

  MpiSession session_{nullptr, nullptr};
  std::unique_ptr<Communicator> world_ = session_.world();
  ThreadPool pool_{2};
};

TEST_F(ReducerTest, TreeEqualsTheSerialTreeForAnyOwners) {
  CounterRng rng(1);
  for (const std::int64_t length : {0, 1, 15, 16, 77, 1000}) {
    const auto reducer = make_tree_reducer(*world_, length, pool_);
    for (int trial = 0; trial < 12; ++trial) {
      const int members = 1 + static_cast<int>(rng.below(4));
      const int leaves = 1 + static_cast<int>(rng.below(21));
      const double absent = trial % 3 * 0.4;
      expect_tree(*reducer, random_owners(rng, members, leaves, ranks(), absent), trial, length);
    }
  }
}

TEST_F(ReducerTest, TreeEqualsTheSerialTreeForEvenShares) {
  const auto reducer = make_tree_reducer(*world_, 300, pool_);
  for (const int leaves : {1, 2, 3, 4, 7, 8, 16}) {
    expect_tree(*reducer, even_owners(5, leaves, ranks()), leaves, 300);
  }
}

// Long enough for the pool to share the additions.
TEST_F(ReducerTest, TreeEqualsTheSerialTreeForLongRows) {
  constexpr std::int64_t length = 200'003;
  const auto reducer = make_tree_reducer(*world_, length, pool_);
  expect_tree(*reducer, even_owners(2, 4, ranks()), 5, length);
}

TEST_F(ReducerTest, TreeDoesNotAddInLeafOrder) {
  const LeafOwners owners = even_owners(1, 8, ranks());
  Row in_order = leaf_row(3, 0, 0, 500);
  for (int leaf = 1; leaf < 8; ++leaf) {
    const Row row = leaf_row(3, 0, leaf, 500);
    for (int i = 0; i < 500; ++i) in_order[i] += row[i];
  }
  EXPECT_NE(bits(in_order), bits(expected_sums(owners, 3, 500)));  // so the tests above can tell
}

TEST_F(ReducerTest, TreeDoesNotDependOnThreadsThatAdd) {
  constexpr std::int64_t length = 3000;
  constexpr int threads = 4;
  const auto reducer = make_tree_reducer(*world_, length, pool_);
  for (int trial = 0; trial < 10; ++trial) {
    const LeafOwners owners = even_owners(3, 19, ranks());
    const std::vector<Leaf> own = own_leaves(owners, world_->rank());
    reducer->begin(owners);
    {
      std::vector<std::jthread> adders;
      for (int thread = 0; thread < threads; ++thread) {
        adders.emplace_back([&, thread] {
          for (int i = thread; i < std::ssize(own); i += threads) {
            const auto [member, leaf] = own[i];
            reducer->add(member, leaf, leaf_row(trial, member, leaf, length));
          }
        });
      }
    }
    EXPECT_EQ(bits(reducer->finalize()), bits(expected_sums(owners, trial, length)));
  }
}

// Units run as indices of a loop of the pool that also shares the additions.
TEST_F(ReducerTest, TreeTakesLeavesFromWithinThePool) {
  constexpr std::int64_t length = 150'000;
  const auto reducer = make_tree_reducer(*world_, length, pool_);
  const LeafOwners owners = even_owners(1, 8, ranks());
  const std::vector<Leaf> own = own_leaves(owners, world_->rank());
  reducer->begin(owners);
  pool_.parallel_for(std::ssize(own), [&](std::int64_t i) {
    reducer->add(own[i].member, own[i].leaf, leaf_row(4, own[i].member, own[i].leaf, length));
  });
  EXPECT_EQ(bits(reducer->finalize()), bits(expected_sums(owners, 4, length)));
}

TEST_F(ReducerTest, TreePassesAbsentLeavesThrough) {
  const auto reducer = make_tree_reducer(*world_, 2, pool_);
  LeafOwners owners{2, 5, std::vector<int>(10, -1)};
  owners.owner[3] = ranks() - 1;  // member 0 has one leaf, member 1 none
  reducer->begin(owners);
  if (world_->rank() == ranks() - 1) reducer->add(0, 3, Row{-0.0f, 1e-42f});
  const std::span<const float> sums = reducer->finalize();
  ASSERT_EQ(sums.size(), 4);
  EXPECT_TRUE(std::signbit(sums[0]));  // -0.0 + 0.0 would be +0.0
  EXPECT_EQ(sums[1], 1e-42f);
  EXPECT_EQ(bits(sums.subspan(2)), bits(Row{0, 0}));
}

TEST_F(ReducerTest, TreeOfNothingIsZero) {
  const auto reducer = make_tree_reducer(*world_, 33, pool_);
  expect_tree(*reducer, even_owners(3, 4, ranks()), 1, 33);  // leaves something in its buffers
  reducer->begin({3, 4, std::vector<int>(12, -1)});
  EXPECT_THAT(reducer->finalize(), Each(0.0f));
  reducer->begin({2, 0, {}});
  EXPECT_EQ(reducer->finalize().size(), 66);
  reducer->begin({});
  EXPECT_TRUE(reducer->finalize().empty());
}

TEST_F(ReducerTest, TreeForgetsAStepThatWasLeft) {
  const auto reducer = make_tree_reducer(*world_, 40, pool_);
  const LeafOwners owners = even_owners(2, 8, ranks());
  reducer->begin(owners);
  for (const Leaf& leaf : own_leaves(owners, world_->rank())) {
    if (leaf.leaf % 3) reducer->add(leaf.member, leaf.leaf, Row(40, 7.0f));
  }
  expect_tree(*reducer, owners, 8, 40);
}

// Slices of sub-trees out, slices of sums in: the traffic of a ring all-reduce, 2 (R-1)/R L.
TEST_F(ReducerTest, TreeSendsWhatARingSendsForPowersOfTwo) {
  constexpr std::int64_t length = 1600, members = 5;
  const auto reducer = make_tree_reducer(*world_, length, pool_);
  expect_tree(*reducer, even_owners(members, 8, ranks()), 1, length);
  const std::int64_t ring = 2 * (ranks() - 1) * members * length * 4 / ranks();
  if (std::has_single_bit(static_cast<unsigned>(ranks()))) {
    // Slices are whole multiples of 16 values.
    EXPECT_NEAR(static_cast<double>(reducer->bytes_sent()), static_cast<double>(ring),
                2.0 * members * ranks() * 16 * 4);
  } else {
    EXPECT_GT(reducer->bytes_sent(), 0);
  }
}

// Slices of equal length; leaf 5 is absent, and the owners follow no order.
TEST_F(ReducerTest, TheForecastOfTheBytesIsWhatTheTreeSends) {
  const std::int64_t length = 160 * ranks(), members = 3;
  LeafOwners owners{3, 6, {}};
  for (int i = 0; i < 18; ++i) owners.owner.push_back(i % 6 == 5 ? -1 : i * 7 / 3 % ranks());
  const auto reducer = make_tree_reducer(*world_, length, pool_);
  expect_tree(*reducer, owners, 1, length);
  const ReductionTree tree = make_reduction_tree(owners, ranks());
  std::size_t most = 0, all = 0, least = 18, own = tree.held[world_->rank()].size();
  for (const auto& held : tree.held) {
    most = std::max(most, held.size());
    least = std::min(least, held.size());
    all += held.size();
  }
  const double slice = 160 * sizeof(float), others = ranks() - 1;
  EXPECT_EQ(static_cast<double>(reducer->bytes_sent()),
            slice * others * static_cast<double>(own + members));
  const ExchangeSize size = exchange_size(owners, ranks(), slice * ranks(), Exchanged::trees);
  EXPECT_DOUBLE_EQ(size.bytes, slice * (std::max(others * static_cast<double>(most),
                                                 static_cast<double>(all - least)) +
                                        others * members));
}

// Two ranks, one member, rows of 64 bytes: a slice has 32.
TEST(ExchangeSize, CountsSlicesAndGatheredSums) {
  const auto size = [](std::vector<int> owner, Exchanged what, int ranks = 2) {
    const LeafOwners owners{1, static_cast<int>(owner.size()), std::move(owner)};
    const ExchangeSize found = exchange_size(owners, ranks, 64, what);
    return std::pair(found.bytes, found.messages);
  };
  // A sub-tree and a sum from each rank to the other, as in a ring.
  EXPECT_EQ(size({0, 0, 1, 1}, Exchanged::trees), std::pair(64.0, 2.0));
  // Two rows from each, and a sum.
  EXPECT_EQ(size({0, 1, 0, 1}, Exchanged::trees), std::pair(96.0, 3.0));
  EXPECT_EQ(size({0, 0, 1, 1}, Exchanged::leaves), std::pair(96.0, 2.0));
  // Rank 1 has nothing: it gets two rows' slices, and sends only its part of the sum.
  EXPECT_EQ(size({0, 0, -1, 0}, Exchanged::leaves), std::pair(128.0, 2.0));
  // Of four ranks with a leaf each, each sends its row's slices of 16 bytes to three others.
  EXPECT_EQ(size({0, 1, 2, 3}, Exchanged::trees, 4), std::pair(96.0, 6.0));
  EXPECT_EQ(size({0, 0}, Exchanged::trees, 1), std::pair(0.0, 0.0));
  EXPECT_EQ(size({-1, -1}, Exchanged::trees), std::pair(0.0, 0.0));
  // Three quarters of a row twice, one quarter at a time.
  EXPECT_EQ(size({0, 1, 2, 3}, Exchanged::ring, 4), std::pair(96.0, 6.0));
}

TEST_F(ReducerTest, RefusesLeavesThatAreNotDue) {
  const auto reducer = make_tree_reducer(*world_, 3, pool_);
  const int own = world_->rank(), next = (own + 1) % ranks();
  EXPECT_THROW(reducer->add(0, 0, Row(3)), DistError);
  EXPECT_THROW(reducer->finalize(), DistError);
  // Every rank owns the leaf of its number, and the last leaf is absent.
  LeafOwners owners{1, ranks() + 1, std::vector<int>(ranks() + 1, -1)};
  std::iota(owners.owner.begin(), owners.owner.end() - 1, 0);
  reducer->begin(owners);
  EXPECT_THROW(reducer->add(0, own, Row(2)), DistError);
  EXPECT_THROW(reducer->add(1, own, Row(3)), DistError);
  EXPECT_THROW(reducer->add(-1, own, Row(3)), DistError);
  EXPECT_THROW(reducer->add(0, ranks() + 1, Row(3)), DistError);
  EXPECT_THROW(reducer->add(0, ranks(), Row(3)), DistError);
  if (next != own) {
    EXPECT_THROW(reducer->add(0, next, Row(3)), DistError);
  }
  reducer->add(0, own, Row(3, 1.0f));
  EXPECT_THROW(reducer->add(0, own, Row(3)), DistError);
  EXPECT_THAT(reducer->finalize(), Each(static_cast<float>(ranks())));
  EXPECT_THROW(reducer->add(0, own, Row(3)), DistError);

  EXPECT_THROW(reducer->begin({1, 2, {0}}), DistError);
  EXPECT_THROW(reducer->begin({1, 1, {ranks()}}), DistError);
  EXPECT_THROW(reducer->begin({-1, -1, {0}}), DistError);
  EXPECT_THROW(make_tree_reducer(*world_, -1, pool_), DistError);
}

TEST_F(ReducerTest, FailsOnEveryRankWhereALeafIsMissing) {
  const auto reducer = make_tree_reducer(*world_, 3, pool_);
  const LeafOwners owners = even_owners(2, 8, ranks());
  reducer->begin(owners);
  for (const Leaf& leaf : own_leaves(owners, world_->rank())) {
    if (leaf.member == 1 && leaf.leaf == 7) continue;  // on the last rank
    reducer->add(leaf.member, leaf.leaf, Row(3, 1.0f));
  }
  try {
    reducer->finalize();
    FAIL();
  } catch (const DistError& error) {
    EXPECT_THAT(error.what(), HasSubstr("leaf 7 of member 1"));
  }
  EXPECT_EQ(reduce(*reducer, owners, 2, 3).size(), 6);  // the next step is sound
}

TEST_F(ReducerTest, TreeNoticesRanksThatDisagree) {
  if (ranks() == 1) return;  // nobody to disagree with
  const auto reducer = make_tree_reducer(*world_, 3, pool_);
  reducer->begin({1, 1, {world_->rank() == 0 ? -1 : 0}});
  EXPECT_THROW(reducer->finalize(), DistError);
}

TEST_F(ReducerTest, NeedsTheMemoryOfTheHost) {
  const auto device = make_self_communicator(MemoryKind::device);
  EXPECT_THROW(make_tree_reducer(*device, 3, pool_), DistError);
}

}  // namespace
}  // namespace tpudist
