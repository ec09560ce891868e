#include "tests/dist/fake_cuda/fake_job.hpp"

#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "dist/collectives/counts.hpp"
#include "tests/dist/fake_cuda/fake_device.hpp"

namespace tpudist::fake {

Job::Job(const JobOptions& given) : options(given), rng(mix_key({given.seed, 7})) {
  ranks.resize(static_cast<std::size_t>(options.ranks));
  for (int number = 0; number < options.ranks; ++number) {
    streams.push_back(std::make_unique<CUstream_st>(CUstream_st{.device = number}));
    ranks[static_cast<std::size_t>(number)].number = number;
    ranks[static_cast<std::size_t>(number)].default_stream = streams.back().get();
  }
}

Job::~Job() {
  for (const Allocation& part : memory) ::munmap(part.data, part.mapped);
}

namespace {

// How long the job goes on after its first error, so that others have time for theirs.
constexpr std::chrono::milliseconds kPatience{5};
// After this a rank that waits for one that does not come is ended, as the watchdog would.
constexpr std::chrono::milliseconds kHang{2000};

// What the ranks share that wait for each other.
struct Meeting {
  explicit Meeting(int ranks) : parts(static_cast<std::size_t>(ranks)) {}
  struct Given {
    const std::byte* send = nullptr;
    std::span<const std::int64_t> counts;
  };
  std::vector<Given> parts;
  int arrived = 0;
  std::uint64_t round = 0;
};

// Host memory over the threads of the job.
class ThreadComm final : public Communicator {
 public:
  ThreadComm(Job& of, Meeting& meeting, int number) : job_(of), meeting_(meeting), rank_(number) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.parts.size()); }
  MemoryKind memory() const override { return MemoryKind::host; }
  std::string_view name() const override { return "threads"; }
  void barrier() override { meet(); }
  std::unique_ptr<Communicator> split(int) override { return nullptr; }

 private:
  // Waits for all. Throws Killed when the job ends before, and an error in the watchdog's place.
  // `surely`: all come, whatever happens to the job.
  void meet(bool surely = false) {
    std::unique_lock lock(job_.mutex);
    const std::uint64_t round = meeting_.round;
    if (++meeting_.arrived == size()) {
      meeting_.arrived = 0;
      ++meeting_.round;
      job_.changed.notify_all();
    }
    const bool told = job_.changed.wait_for(
        lock, kHang, [&] { return meeting_.round != round || (job_.ended && !surely); });
    if (!told) throw DistError("a rank does not come");
    if (meeting_.round == round) throw Killed{};
  }

  // All give `send`; take() reads those of the others; then all go on.
  template <typename Take>
  void exchange(const void* send, std::span<const std::int64_t> counts, const Take& take) {
    meeting_.parts[static_cast<std::size_t>(rank_)] = {static_cast<const std::byte*>(send), counts};
    meet();
    take();
    meet(/*surely=*/true);  // the others may read `send` until here
  }

  void broadcast_bytes(std::span<std::byte> data, int root) override {
    exchange(data.data(), {}, [&] {
      if (rank_ != root && !data.empty())
        std::memcpy(data.data(), meeting_.parts[static_cast<std::size_t>(root)].send, data.size());
    });
  }

  template <typename T>
  void all_reduce_any(std::span<T> data, ReduceOp op) {
    std::vector<T> sums;
    exchange(data.data(), {}, [&] {
      for (std::size_t i = 0; i < data.size(); ++i) {
        T sum = reinterpret_cast<const T*>(meeting_.parts[0].send)[i];
        for (std::size_t r = 1; r < meeting_.parts.size(); ++r) {
          const T value = reinterpret_cast<const T*>(meeting_.parts[r].send)[i];
          sum = op == ReduceOp::sum   ? sum + value
                : op == ReduceOp::min ? std::min(sum, value)
                                      : std::max(sum, value);
        }
        sums.push_back(sum);
      }
    });
    std::ranges::copy(sums, data.begin());
  }
  void all_reduce_float(std::span<float> data, ReduceOp op) override { all_reduce_any(data, op); }
  void all_reduce_double(std::span<double> data, ReduceOp op) override { all_reduce_any(data, op); }
  void all_reduce_int64(std::span<std::int64_t> data, ReduceOp op) override {
    all_reduce_any(data, op);
  }

  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    const Exchange parts =
        exchange_of(send, send_counts, recv, recv_counts, element_bytes, rank_, size());
    exchange(send.data(), send_counts, [&] {
      for (int from = 0; from < size(); ++from) {
        const Meeting::Given& other = meeting_.parts[static_cast<std::size_t>(from)];
        std::int64_t before = 0;
        for (int r = 0; r < rank_; ++r) before += other.counts[static_cast<std::size_t>(r)];
        if (parts.recv.size(from) == 0) continue;
        std::memcpy(recv.data() + parts.recv.offset[static_cast<std::size_t>(from)],
                    other.send + before * element_bytes, parts.recv.size(from));
      }
    });
  }

  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    const Parts parts = gather_parts_of(send, recv, counts, element_bytes, rank_, size());
    exchange(send.data(), {}, [&] {
      for (int from = 0; from < size(); ++from) {
        if (parts.size(from) == 0) continue;
        std::memmove(recv.data() + parts.offset[static_cast<std::size_t>(from)],
                     meeting_.parts[static_cast<std::size_t>(from)].send, parts.size(from));
      }
    });
  }

  Job& job_;
  Meeting& meeting_;
  const int rank_;
};

void end_job(Job& all, int number, const std::string& text) {
  {
    const std::lock_guard lock(all.mutex);
    all.result.errors.push_back("rank " + std::to_string(number) + ": " + text);
    if (all.result.errors.size() > 1) return;
  }
  std::this_thread::sleep_for(kPatience);
  const std::lock_guard lock(all.mutex);
  all.ended = true;
  all.changed.notify_all();
}

}  // namespace

JobResult run_job(const JobOptions& options, const std::function<void(Communicator&)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  Job all(options);
  Meeting meeting(options.ranks);
  job = &all;
  spdlog::set_level(spdlog::level::err);  // errors in destructors, which many faults cause
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < options.ranks; ++number) {
      threads.emplace_back([&, number] {
        rank = &all.ranks[static_cast<std::size_t>(number)];
        current_device = 0;
        ThreadComm world(all, meeting, number);
        try {
          body(world);
        } catch (const Killed&) {
        } catch (const std::exception& error) {
          end_job(all, number, error.what());
        }
      });
    }
  }
  job = nullptr;
  for (const Rank& one : all.ranks) all.result.calls.push_back(one.calls);
  all.result.seconds = seconds_since(begin);
  return all.result;
}

}  // namespace tpudist::fake
