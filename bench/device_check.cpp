// Checks of trainings on a device.
//
//   device_check ranks EXPERIMENT [KEY=VALUE ...]       1 and 8 ranks, which are threads that share
//       device 0, with copies in NCCL's place: prints the hashes of their parameters
//   device_check members EXPERIMENT [KEY=VALUE ...]     members 0 to 4 together, and some of them in other
//       calls and places: prints which have the same parameters
//   device_check gradients EXPERIMENT [KEY=VALUE ...]   the gradients of the first step on the device
//       and on the CPU: prints the norm of their difference as a part of the CPU's, by member
//   device_check rows                                   whether 1 to 200,000 rows have the same bits
//       in a product alone as among 200,000, in every precision
//   device_check products                               TFLOP/s of products of several shapes, and
//       whether members of other calls have the same bits
//   device_check host                                   microseconds in which the host queues an operation
//
// Exit code 1 where parameters or bits differ, or gradients by more than the tolerance of the precision.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/nccl_communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/executor.hpp"
#include "models/operators/backend.hpp"
#include "results/checkpoints/checkpoint.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "tests/dist/thread_ranks.hpp"
#include "tests/support/temp_dir.hpp"
#include "train/loop/trainer.hpp"

namespace tpudist {
namespace {

constexpr int kPlayedRanks = 8;

// The meeting of the ranks' devices.
std::unique_ptr<test::Meeting> devices_meet;

}  // namespace

#ifndef TPUDIST_EMULATED
// Stands in for NCCL: objects come before libraries when a program is linked.
std::unique_ptr<Communicator> make_nccl_communicator(Communicator& world, int, RankActivity*,
                                                     double) {
  return std::make_unique<test::ThreadComm>(*devices_meet, world.rank(), MemoryKind::device,
                                            copy_device_bytes);
}
std::string nccl_version_report() {
  return "NCCL: copies between threads";
}
#endif

namespace {

struct Trained {
  std::uint64_t hash = 0;
  Checkpoint last;
};

// Trains on ranks that are threads. `device`: of all of them, -1 is the CPU.
Trained train_on(const Experiment& experiment, int ranks, int device) {
  const test::TempDir folder;
  const std::filesystem::path run = folder / "run";
  test::Meeting meeting(ranks);
  devices_meet = std::make_unique<test::Meeting>(ranks);
  std::exception_ptr error;
  std::mutex mutex;
  Trained trained;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        test::ThreadComm world(meeting, rank);
        ThreadPool pool(1, use_one_thread_per_worker);
        use_one_thread_per_worker();
        NoProgress progress;
        NodeTopology topology;
        topology.device = device;
        topology.local_rank = rank;
        topology.local_ranks = ranks;
        JobContext context{world, pool, topology, progress};
        const TrainOutcome outcome = train(experiment, run, false, context, [] { return false; });
        const std::lock_guard lock(mutex);
        if (trained.hash != 0 && trained.hash != outcome.parameter_hash)
          throw Error(ErrorKind::failed, "ranks have different parameters");
        trained.hash = outcome.parameter_hash;
      } catch (const test::RanksEnded&) {
      } catch (...) {
        {
          const std::lock_guard lock(mutex);
          if (!error) error = std::current_exception();
        }
        meeting.end();
        devices_meet->end();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  const std::vector<std::filesystem::path> saved = list_checkpoints(run / "checkpoints");
  if (!saved.empty()) {
    const CheckpointFile file(saved.front());
    trained.last = file.load(file.parameters());
  }
  return trained;
}

int check_ranks(const Experiment& experiment) {
  const Trained one = train_on(experiment, 1, 0), many = train_on(experiment, kPlayedRanks, 0);
  fmt::print("1 rank: {}\n{} ranks: {}\n", to_hex(one.hash), kPlayedRanks, to_hex(many.hash));
  return one.hash == many.hash ? 0 : 1;
}

Experiment read(const char* file, std::vector<std::string> settings) {
  ConfigDocument document = ConfigDocument::load(file, settings);
  return read_experiment(document);
}

std::span<const float> row(const std::vector<float>& rows, int members, int member) {
  const std::size_t length = rows.size() / static_cast<std::size_t>(members);
  return std::span(rows).subspan(static_cast<std::size_t>(member) * length, length);
}

int check_members(const char* file, const std::vector<std::string>& settings) {
  struct Some {
    int first, count, together;
  };
  std::vector<Checkpoint> all;
  int different = 0;
  for (const Some& some : std::vector<Some>{
           {0, 5, 5}, {0, 5, 1}, {0, 5, 2}, {0, 1, 1}, {0, 2, 2}, {2, 3, 3}, {1, 4, 4}}) {
    std::vector<std::string> own = settings;
    own.push_back(fmt::format("ensemble.first_member={}", some.first));
    own.push_back(fmt::format("ensemble.members={}", some.count));
    own.push_back(fmt::format("batch.member_chunk={}", some.together));
    all.push_back(train_on(read(file, own), 1, 0).last);
    if (all.back().members != some.count) throw Error(ErrorKind::failed, "a run wrote nothing");
    std::string result;
    for (int m = 0; m < some.count; ++m) {
      const auto expected = row(all.front().parameters, 5, some.first + m),
                 actual = row(all.back().parameters, some.count, m);
      const bool same = std::ranges::equal(std::as_bytes(expected), std::as_bytes(actual));
      if (!same) ++different;
      result += same ? " same" : " DIFFERENT";
    }
    fmt::print("members {} to {}, {} in a call:{}\n", some.first, some.first + some.count - 1,
               some.together, result);
  }
  return different == 0 ? 0 : 1;
}

// After one step Adam's first moment is the gradient, but for a factor.
int check_gradients(const Experiment& experiment) {
  const Precision precision = experiment.network.precision;
  // In tf32 an H200 was 3e-2 from the CPU, which rounds operands to nearest: cuBLAS probably cuts some.
  const double tolerance = precision == Precision::fp32   ? 1e-4
                           : precision == Precision::tf32 ? 6e-2
                                                          : 2e-2;
  const Checkpoint cpu = train_on(experiment, 1, -1).last, device = train_on(experiment, 1, 0).last;
  if (cpu.members == 0 || cpu.first_moment.size() != device.first_moment.size())
    throw Error(ErrorKind::failed, "the runs wrote no gradients");
  double largest = 0;
  for (int m = 0; m < cpu.members; ++m) {
    const auto expected = row(cpu.first_moment, cpu.members, m),
               actual = row(device.first_moment, cpu.members, m);
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(double{actual[i]} - double{expected[i]}, 2);
      norm += std::pow(double{expected[i]}, 2);
    }
    const double part = std::sqrt(difference / norm);
    fmt::print("member {}: {:.1e}\n", m, part);
    largest = std::isnan(part) ? part : std::max(largest, part);
  }
  fmt::print("largest {:.1e}, tolerance {:.0e}\n", largest, tolerance);
  return largest <= tolerance ? 0 : 1;
}

// Products of the first and the last rows alone, and gradients of rows, against the same among all
// rows. Exit code 1 where bits differ.
int check_rows() {
  constexpr std::int64_t kMembers = 5, kRows = 200'000;
  const DeviceContext place = make_device_context(0);
  const auto options = at::TensorOptions(at::kFloat).device(place.device);
  int different = 0;
  for (const auto& [in, out] : std::vector<std::array<std::int64_t, 2>>{
           {13, 7}, {50, 32}, {64, 64}, {172, 64}, {128, 256}, {256, 256}}) {
    const auto drawn = [&](std::int64_t height, std::int64_t width) {
      return make_rows(kMembers, height, width, options).normal_();
    };
    const at::Tensor x = drawn(kRows, in), w = drawn(in, out), d_y = drawn(kRows, out);
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
      const std::unique_ptr<const Backend> backend = place.make_backend(DeviceArrays(), precision);
      const auto results = [&](std::int64_t first, std::int64_t count) {
        const auto some = [&](const at::Tensor& all) {
          return make_rows(kMembers, count, all.size(2), options)
              .copy_(all.narrow(1, first, count));
        };
        const at::Tensor own = some(x);
        return std::array{backend->linear(own, w, {}),
                          backend->linear_gradient(own, w, some(d_y), true, false).x};
      };
      const std::array all = results(0, kRows);
      std::string line;
      for (const std::int64_t rows : {1, 7, 63, 64, 4'096, 200'000}) {
        bool same = true;
        for (const std::int64_t first : {std::int64_t{0}, kRows - rows}) {
          const std::array some = results(first, rows);
          for (std::size_t i = 0; i < all.size(); ++i)
            same = same && at::equal(some[i], all[i].narrow(1, first, rows));
        }
        different += same ? 0 : 1;
        line += fmt::format("  {}{}", rows, same ? "" : " DIFFERENT");
      }
      fmt::print("{:>9} {}: rows{}\n", fmt::format("{} x {}", in, out), precision_name(precision),
                 line);
    }
  }
  fmt::print("{} of rows alone differ\n", different);
  return different == 0 ? 0 : 1;
}

// Products with weights, gradients of weights, and both gradients, of five members: TFLOP/s. The
// bits of fewer members, in other places, must be the same. Exit code 1 where they are not.
int time_products() {
  constexpr std::int64_t kMembers = 5;
  const DeviceContext place = make_device_context(0);
  int different = 0;
  fmt::print("{:>24} {:>9} {:>10} {:>10} {:>10}   {}\n", "TFLOP/s, rows x in x out", "", "product",
             "d weight", "gradients", "members alone");
  for (const auto& [rows, in, out] : std::vector<std::array<std::int64_t, 3>>{{300, 64, 64},
                                                                              {3'000, 64, 64},
                                                                              {3'000, 172, 64},
                                                                              {3'000, 128, 128},
                                                                              {30'000, 64, 64},
                                                                              {30'000, 128, 128},
                                                                              {100'000, 256, 256},
                                                                              {30'000, 320, 320},
                                                                              {3'001, 13, 7}}) {
    const auto options = at::TensorOptions(at::kFloat).device(place.device);
    const auto drawn = [&](std::int64_t height, std::int64_t width) {
      return make_rows(kMembers, height, width, options).normal_();
    };
    const at::Tensor x = drawn(rows, in), w = drawn(in, out), d_y = drawn(rows, out);
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
      const std::unique_ptr<const Backend> backend = place.make_backend(DeviceArrays(), precision);
      // What a call of `count` members from `first` gives.
      const auto results = [&](std::int64_t first, std::int64_t count) {
        const auto of = [&](const at::Tensor& all) { return all.narrow(0, first, count); };
        const auto gradients = backend->linear_gradient(of(x), of(w), of(d_y), true, true);
        return std::vector{backend->linear(of(x), of(w), {}), gradients.x, gradients.parameter,
                           gradients.bias};
      };
      const std::vector<at::Tensor> all = results(0, kMembers);
      bool same = true;
      for (const auto& [first, count] :
           std::vector<std::pair<int, int>>{{0, 1}, {4, 1}, {1, 2}, {2, 3}, {1, 4}}) {
        const std::vector<at::Tensor> some = results(first, count);
        for (std::size_t i = 0; i < all.size(); ++i)
          same = same && at::equal(some[i], all[i].narrow(0, first, count));
      }
      different += same ? 0 : 1;
      const auto rate = [&](const std::function<void()>& operation) {
        double best = 1e30;
        for (int i = 0; i < 4; ++i) {
          constexpr int kTimes = 20;
          all[0].flatten()[0].item<float>();  // waits for the device
          const auto begin = std::chrono::steady_clock::now();
          for (int k = 0; k < kTimes; ++k) operation();
          all[0].flatten()[0].item<float>();
          const auto end = std::chrono::steady_clock::now();
          best = std::min(best, std::chrono::duration<double>(end - begin).count() / kTimes);
        }
        return 2e-12 * static_cast<double>(kMembers * rows * in * out) / best;
      };
      const double product = rate([&] { backend->linear(x, w, {}); }),
                   weight = rate([&] { backend->linear_gradient(x, w, d_y, false, false); }),
                   both = rate([&] { backend->linear_gradient(x, w, d_y, true, false); });
      fmt::print("{:>24} {:>9} {:>10.1f} {:>10.1f} {:>10.1f}   {}\n",
                 fmt::format("{} x {} x {}", rows, in, out), precision_name(precision), product,
                 weight, 2 * both, same ? "same bits" : "OTHER BITS");
    }
  }
  return different == 0 ? 0 : 1;
}

// What the host takes to queue operations so small that the device is never the limit.
int time_host() {
  const DeviceContext place = make_device_context(0);
  constexpr int kTimes = 2'000;
  const at::Tensor members = at::randn({5, 64, 64}, place.device);
  at::Tensor results = at::empty_like(members);
  const at::Tensor a = members[0], b = members[1];
  at::Tensor c = results[0];
  const auto row = [&](const char* name, const auto& operation) {
    double best = 1e30;
    for (int i = 0; i < 5; ++i) {
      c[0][0].item<float>();  // waits for the device
      const auto begin = std::chrono::steady_clock::now();
      for (int k = 0; k < kTimes; ++k) operation();
      const auto end = std::chrono::steady_clock::now();
      best = std::min(best, std::chrono::duration<double>(end - begin).count() / kTimes);
    }
    fmt::print("{:>40} {:>8.2f} us\n", name, 1e6 * best);
  };
  row("view of a member", [&] { members[2]; });
  row("empty tensor", [&] { at::empty_like(a); });
  row("product", [&] { at::mm_out(c, a, b); });
  row("product of views", [&] {
    at::Tensor y = results[0];
    at::mm_out(y, members[0].t(), members[1]);
  });
  row("sum", [&] { at::add_out(c, a, b); });
  row("batched product of five", [&] { at::bmm_out(results, members, members); });
  return 0;
}

int run(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "rows" && argc == 2) return check_rows();
  if (what == "products" && argc == 2) return time_products();
  if (what == "host" && argc == 2) return time_host();
  if ((what != "ranks" && what != "members" && what != "gradients") || argc < 3) {
    fmt::print(stderr,
               "usage: device_check ranks|members|gradients EXPERIMENT [KEY=VALUE ...]\n"
               "       device_check rows|products|host\n");
    return 2;
  }
  spdlog::set_level(spdlog::level::warn);
  std::vector<std::string> settings(argv + 3, argv + argc);
  if (what == "members") return check_members(argv[2], settings);
  if (what == "ranks") return check_ranks(read(argv[2], settings));
  settings.insert(settings.end(),
                  {"train.steps=1", "train.evaluate_every=0", "train.early_stop.patience=0",
                   "train.last_evaluation=none", "train.checkpoint_every=1"});
  return check_gradients(read(argv[2], settings));
}

}  // namespace
}  // namespace tpudist

int main(int argc, char** argv) {
  try {
    return tpudist::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "device_check: {}\n", error.what());
    return 1;
  }
}
