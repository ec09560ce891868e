// The time of one reduction of the gradients of an ensemble: the fixed tree beside a plain
// MPI_Allreduce of the same size, which is what gives up equal bits.
//   mpirun -np 2 --bind-to none build/release/bench/tree_reducer_bench [members floats leaves
//   threads]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "dist/collectives/gradient_reducer.hpp"
#include "dist/collectives/mpi_session.hpp"

namespace tpudist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 21, warm_up = 3;  // the first rounds touch fresh memory

// Seconds until the slowest rank is done.
double time_of(Communicator& world, const std::function<void()>& measured) {
  world.barrier();
  const auto start = Clock::now();
  measured();
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  world.all_reduce(std::span(&seconds, 1), ReduceOp::max);
  return seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
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

  // Both are timed in every round, so that what disturbs the machine disturbs them alike.
  const auto reducer = make_tree_reducer(world, size.floats, pool);
  std::vector<double> plain, add, finish, ratio;
  for (int round = 0; round < rounds; ++round) {
    const double reference =
        time_of(world, [&] { world.all_reduce(std::span<float>(flat), ReduceOp::sum); });
    const double added = time_of(world, [&] {
      reducer->begin(owners);
      for (int leaf = 0; leaf < size.members * size.leaves; ++leaf) {
        if (owners.owner[leaf] != world.rank()) continue;
        reducer->add(leaf / size.leaves, leaf % size.leaves, row);
      }
    });
    const double finished = time_of(world, [&] { reducer->finalize(); });
    if (round < warm_up) continue;
    plain.push_back(reference);
    add.push_back(added);
    finish.push_back(finished);
    ratio.push_back(finished / reference);
  }
  if (world.rank() != 0) return;
  const double ring = 2.0 * (world.size() - 1) / world.size() * flat.size() * sizeof(float);
  fmt::print("{} ranks, {} threads, {} members x {} leaves x {} floats ({} in all)\n", world.size(),
             size.threads, size.members, size.leaves, size.floats,
             format_bytes(flat.size() * sizeof(float)));
  fmt::print("{:<12}{:>8.1f} ms\n", "MPI_Allreduce", 1e3 * median(plain));
  fmt::print("{:<12}{:>9.1f} ms, adding leaves before {:.1f} ms", "tree", 1e3 * median(finish),
             1e3 * median(add));
  if (world.size() > 1) {
    const double sent = static_cast<double>(reducer->bytes_sent()) / rounds;
    fmt::print("; {:.2f} x MPI_Allreduce; rank 0 sent {} = {:.4f} x ring", median(ratio),
               format_bytes(static_cast<std::uint64_t>(sent)), sent / ring);
  }
  fmt::print("\n");
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
