// The time of one reduction of the gradients of an ensemble: the fixed tree beside a plain
// MPI_Allreduce of the same size, which is what gives up equal bits.
//   mpirun -np 2 --bind-to none build/release/bench/tree_reducer_bench [members floats leaves
//   threads]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "dist/communicators.hpp"
#include "dist/gradient_reducer.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of the slowest rank, median of several rounds.
double median_seconds(Communicator& world, const std::function<void()>& prepare,
                      const std::function<void()>& measured) {
  std::vector<double> times;
  for (int round = 0; round < 15; ++round) {
    prepare();
    world.barrier();
    const auto start = Clock::now();
    measured();
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    world.all_reduce(std::span(&seconds, 1), ReduceOp::max);
    if (round >= 3) times.push_back(seconds);  // the first touch fresh memory
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

struct Size {
  int members = 5;
  std::int64_t floats = 2'300'000;
  int leaves = 4;
  int threads = 1;
};

void run(Communicator& world, const Size& size) {
  ThreadPool pool(size.threads);
  LeafOwners owners{size.members, size.leaves, {}};
  for (int i = 0; i < size.members * size.leaves; ++i) {
    owners.owner.push_back(i % size.leaves * world.size() / size.leaves);
  }
  const std::vector<float> row(size.floats, 1.25f);
  std::vector<float> flat(size.floats * size.members, 1.25f);

  const double plain = median_seconds(
      world, [] {}, [&] { world.all_reduce(std::span<float>(flat), ReduceOp::sum); });
  if (world.rank() == 0) {
    fmt::print("{} ranks, {} threads, {} members x {} leaves x {} floats ({} per member)\n",
               world.size(), size.threads, size.members, size.leaves, size.floats,
               format_bytes(size.floats * sizeof(float)));
    fmt::print("{:<24}{:>9.1f} ms\n", "MPI_Allreduce", 1e3 * plain);
  }

  const auto measure = [&](const char* name, GradientReducer& reducer) {
    const auto add_all = [&] {
      reducer.begin(owners);
      for (int i = 0; i < size.members * size.leaves; ++i) {
        if (owners.owner[i] == world.rank()) reducer.add(i / size.leaves, i % size.leaves, row);
      }
    };
    const double add = median_seconds(
        world, [] {}, add_all);  // leaves each step unfinished
    const std::int64_t before = reducer.bytes_sent();
    const double finish = median_seconds(world, add_all, [&] { reducer.finalize(); });
    const auto sent = static_cast<double>(reducer.bytes_sent() - before) / 15;
    const double ring = 2.0 * (world.size() - 1) / world.size() * flat.size() * sizeof(float);
    if (world.rank() != 0) return;
    fmt::print("{:<24}{:>9.1f} ms, adding leaves before {:.1f} ms", name, 1e3 * finish, 1e3 * add);
    if (world.size() > 1) {
      fmt::print("; {:.2f} x MPI_Allreduce; rank 0 sent {} = {:.4f} x ring", finish / plain,
                 format_bytes(static_cast<std::uint64_t>(sent)), sent / ring);
    }
    fmt::print("\n");
  };
  measure("tree: finalize", *make_tree_reducer(world, size.floats, pool));
  measure("all_reduce: finalize", *make_all_reduce_reducer(world, size.floats, pool));
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  tpudist::MpiSession session(&argc, &argv);
  tpudist::Size size;
  if (argc > 1) size.members = std::atoi(argv[1]);
  if (argc > 2) size.floats = std::atoll(argv[2]);
  if (argc > 3) size.leaves = std::atoi(argv[3]);
  if (argc > 4) size.threads = std::atoi(argv[4]);
  if (size.members < 1 || size.floats < 1 || size.leaves < 1 || size.threads < 1) {
    fmt::print(stderr, "usage: tree_reducer_bench [members floats leaves threads], all > 0\n");
    return 2;
  }
  try {
    tpudist::run(*session.world(), size);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    tpudist::MpiSession::abort(1);
  }
}
