#include "tests/dist/fake_cuda/fake_job.hpp"

#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <chrono>
#include <exception>
#include <thread>

#include "core/numbers.hpp"
#include "tests/dist/fake_cuda/fake_device.hpp"
#include "tests/dist/thread_ranks.hpp"

namespace tpudist::fake {

Job::Job(const JobOptions& given) : options(given), rng(mix_key({given.seed, 7})) {
  ranks.resize(options.ranks);
  for (int number = 0; number < options.ranks; ++number) {
    streams.push_back(std::make_unique<CUstream_st>(CUstream_st{.device = number}));
    ranks[number].number = number;
    ranks[number].default_stream = streams.back().get();
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

void end_job(Job& all, test::Meeting& meeting, int number, const std::string& text) {
  {
    const std::lock_guard lock(all.mutex);
    all.result.errors.push_back("rank " + std::to_string(number) + ": " + text);
    if (all.result.errors.size() > 1) return;
  }
  std::this_thread::sleep_for(kPatience);
  meeting.end();
  const std::lock_guard lock(all.mutex);
  all.ended = true;
}

}  // namespace

JobResult run_job(const JobOptions& options, const std::function<void(Communicator&)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  Job all(options);
  test::Meeting meeting(options.ranks, kHang);
  job = &all;
  spdlog::set_level(spdlog::level::err);  // errors in destructors, which many faults cause
  {
    std::vector<std::jthread> threads;
    for (int number = 0; number < options.ranks; ++number) {
      threads.emplace_back([&, number] {
        rank = &all.ranks[number];
        current_device = 0;
        test::ThreadComm world(meeting, number);
        try {
          body(world);
        } catch (const Killed&) {
        } catch (const std::exception& error) {
          end_job(all, meeting, number, error.what());
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
