#include "core/thread_pool.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/prefetcher.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist {
namespace {

using namespace std::chrono_literals;

// Waits until `holds()`; false if it does not within 20 s.
template <typename Holds>
bool comes_true(const Holds& holds) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return holds();
}

// Waits until `count` threads have arrived; false when they do not within 20 s.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  bool arrive() {
    ++arrived_;
    return comes_true([&] { return arrived_ >= count_; });
  }

 private:
  const int count_;
  std::atomic<int> arrived_{0};
};

RC_GTEST_PROP(ThreadPool, RunsEachIndexOnce, ()) {
  const int threads = *rc::gen::inRange(0, 6);
  const auto count = *rc::gen::inRange<std::size_t>(0, 3000);
  ThreadPool pool(threads);
  std::vector<std::atomic<int>> runs(count);
  pool.parallel_for(static_cast<std::int64_t>(count),
                    [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
  for (const auto& run : runs) RC_ASSERT(run == 1);
}

TEST(ThreadPool, CountsTheCaller) {
  EXPECT_EQ(ThreadPool(3).threads(), 3);
  EXPECT_EQ(ThreadPool(1).threads(), 1);
  EXPECT_EQ(ThreadPool(0).threads(), 1);
}

TEST(ThreadPool, RunsInTheCallerWhenAlone) {
  const auto caller = std::this_thread::get_id();
  const auto expect_caller = [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); };
  ThreadPool alone(1), several(3);
  alone.parallel_for(10, expect_caller);
  several.parallel_for(1, expect_caller);
  several.parallel_for(0, [](std::int64_t) { FAIL(); });
  several.parallel_for(-1, [](std::int64_t) { FAIL(); });
}

TEST(ThreadPool, RunsSideBySide) {
  ThreadPool pool(4);
  Meeting meeting(4);
  pool.parallel_for(4, [&](std::int64_t) { EXPECT_TRUE(meeting.arrive()); });
}

TEST(ThreadPool, SeesResultsAfterTheLoop) {
  ThreadPool pool(4);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> values(40);  // not atomic: the end of the loop orders them
    pool.parallel_for(40, [&](std::int64_t i) { values[static_cast<std::size_t>(i)] = round; });
    for (const int value : values) ASSERT_EQ(value, round);
  }
}

TEST(ThreadPool, NestsLoops) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  pool.parallel_for(6, [&](std::int64_t) {
    pool.parallel_for(5,
                      [&](std::int64_t) { pool.parallel_for(4, [&](std::int64_t) { ++runs; }); });
  });
  EXPECT_EQ(runs, 6 * 5 * 4);
}

TEST(ThreadPool, HelpsAcrossAnInnerLoopOfOneIndex) {
  ThreadPool pool(2);
  Meeting meeting(2);
  pool.parallel_for(1, [&](std::int64_t) {
    pool.parallel_for(2, [&](std::int64_t) { EXPECT_TRUE(meeting.arrive()); });
  });
}

// One of the two threads has nothing to do but to help inside of the other one's task, be it the
// caller that waits for the end or the pool's own thread.
TEST(ThreadPool, HelpsWithInnerLoops) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(2);
    Meeting meeting(2);
    pool.parallel_for(2, [&](std::int64_t outer) {
      if (outer == round % 2) return;
      if (round % 3 == 0) std::this_thread::sleep_for(1ms);  // the helper is asleep by then
      pool.parallel_for(2, [&](std::int64_t) { EXPECT_TRUE(meeting.arrive()); });
    });
  }
}

TEST(ThreadPool, HelpsAtTheThirdLevel) {
  ThreadPool pool(3);
  Meeting meeting(3);
  pool.parallel_for(3, [&](std::int64_t outer) {
    if (outer != 2) return;
    pool.parallel_for(2, [&](std::int64_t middle) {
      if (middle != 0) return;
      pool.parallel_for(3, [&](std::int64_t) { EXPECT_TRUE(meeting.arrive()); });
    });
  });
}

TEST(ThreadPool, ServesSeveralCallers) {
  ThreadPool pool(3);
  std::atomic<int> runs{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pool.parallel_for(
            4, [&](std::int64_t) { pool.parallel_for(3, [&](std::int64_t) { ++runs; }); });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(runs, 4 * 50 * 4 * 3);
}

TEST(ThreadPool, NestsAcrossPools) {
  ThreadPool outer(2), inner(2);
  std::atomic<int> runs{0};
  for (int round = 0; round < 20; ++round) {
    outer.parallel_for(4, [&](std::int64_t) {
      inner.parallel_for(
          4, [&](std::int64_t) { outer.parallel_for(4, [&](std::int64_t) { ++runs; }); });
    });
  }
  EXPECT_EQ(runs, 20 * 4 * 4 * 4);
}

// The pool's one thread is busy while others open loops of two tasks, of which they do the first.
TEST(ThreadPool, HelpsBackgroundThreadsLast) {
  ThreadPool pool(2);
  std::atomic<bool> busy{false}, free{false};
  std::vector<std::string> helped;  // by the pool's thread
  std::atomic<int> helps{0}, opened{0};
  const auto wait_for = [](const auto& holds) { EXPECT_TRUE(comes_true(holds)); };
  std::thread::id helper;
  std::thread keeps_busy([&] {
    const std::thread::id caller = std::this_thread::get_id();
    pool.parallel_for(2, [&](std::int64_t) {
      if (std::this_thread::get_id() != caller) {
        helper = std::this_thread::get_id();
        busy = true;
      }
      wait_for([&] { return free.load(); });
    });
  });
  wait_for([&] { return busy.load(); });
  const auto open = [&](const char* name, bool background) {
    return std::thread([&, name, background] {
      if (background) mark_background_thread();
      pool.parallel_for(2, [&](std::int64_t) {
        if (std::this_thread::get_id() == helper) {
          helped.emplace_back(name);
          ++helps;
        } else {
          ++opened;
          wait_for([&] { return helps == 3; });
        }
      });
    });
  };
  std::vector<std::thread> callers;
  for (const auto& [name, background] :
       {std::pair("awaited", false), std::pair("background", true), std::pair("later", true)}) {
    callers.push_back(open(name, background));
    const int count = static_cast<int>(callers.size());
    wait_for([&] { return opened == count; });
  }
  free = true;
  keeps_busy.join();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(helped, (std::vector<std::string>{"awaited", "background", "later"}));
}

TEST(ThreadPool, LeavesABackgroundLoopForOneThatIsAwaited) {
  ThreadPool pool(2);
  std::atomic<bool> helps_background{false}, opened{false}, helped{false};
  const auto wait_for = [](const std::atomic<bool>& flag) {
    EXPECT_TRUE(comes_true([&] { return flag.load(); }));
  };
  std::thread background([&] {
    mark_background_thread();
    const std::thread::id caller = std::this_thread::get_id();
    pool.parallel_for(3, [&](std::int64_t) {
      if (std::this_thread::get_id() == caller) return wait_for(helped);
      const bool again = helps_background.exchange(true);
      EXPECT_TRUE(!again || helped);
      wait_for(opened);
    });
  });
  wait_for(helps_background);
  const std::thread::id caller = std::this_thread::get_id();
  pool.parallel_for(2, [&](std::int64_t) {
    if (std::this_thread::get_id() != caller) {
      helped = true;
    } else {
      opened = true;
      wait_for(helped);
    }
  });
  background.join();
}

TEST(ThreadPool, RethrowsTheLowestFailure) {
  ThreadPool pool(4);
  Meeting meeting(4);
  const auto fail = [&](std::int64_t i) {
    meeting.arrive();
    throw std::runtime_error(std::to_string(i));
  };
  EXPECT_EQ(test::message_of<std::runtime_error>([&] { pool.parallel_for(4, fail); }), "0");
}

TEST(ThreadPool, LeavesIndicesOutAfterAFailure) {
  for (const int threads : {1, 4}) {
    ThreadPool pool(threads);
    std::atomic<int> runs{0};
    EXPECT_THROW(pool.parallel_for(1'000'000,
                                   [&](std::int64_t) {
                                     ++runs;
                                     throw std::runtime_error("");
                                   }),
                 std::runtime_error);
    EXPECT_LE(runs, threads);
    runs = 0;
    pool.parallel_for(100, [&](std::int64_t) { ++runs; });  // and goes on as before
    EXPECT_EQ(runs, 100);
  }
}

TEST(ThreadPool, FailuresPassThroughOuterLoops) {
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    EXPECT_THROW(pool.parallel_for(4,
                                   [&](std::int64_t outer) {
                                     pool.parallel_for(4, [&](std::int64_t inner) {
                                       if (outer == 2 && inner == 3) throw std::runtime_error("");
                                     });
                                   }),
                 std::runtime_error);
  }
}

TEST(ThreadPool, StartsEveryThreadWithTheHook) {
  std::mutex mutex;
  std::set<std::thread::id> started;
  ThreadPool pool(4, [&] {
    std::lock_guard lock(mutex);
    started.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(started.size(), 3u);
  EXPECT_FALSE(started.contains(std::this_thread::get_id()));
}

TEST(ThreadPool, ReportsAFailureOfTheHook) {
  EXPECT_THROW(ThreadPool(3, [] { throw std::runtime_error(""); }), std::runtime_error);
}

TEST(ThreadPool, SleepsWhenIdle) {
  ThreadPool pool(8);
  pool.parallel_for(8, [](std::int64_t) {});
  const std::clock_t before = std::clock();  // processor time of all threads
  std::this_thread::sleep_for(200ms);
  const double used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(used, 0.1);
}

TEST(ThreadPool, SleepsWhileItWaits) {
  ThreadPool pool(2);
  std::clock_t before = 0;
  std::atomic<bool> other_done{false};
  pool.parallel_for(2, [&](std::int64_t i) {
    if (i == 0) {
      before = std::clock();
      std::this_thread::sleep_for(200ms);
    } else {
      other_done = true;
    }
  });
  EXPECT_TRUE(other_done);
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);
}

}  // namespace
}  // namespace tpudist
