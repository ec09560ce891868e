#include "dist/health/stop_signal.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Keeps the variable that mpirun sets as the test wants it, and puts it back.
class MpirunVariable {
 public:
  explicit MpirunVariable(bool set) {
    if (const char* value = std::getenv(name)) before_ = value;
    if (set) {
      setenv(name, "2", 1);
    } else {
      unsetenv(name);
    }
  }
  ~MpirunVariable() {
    if (before_) {
      setenv(name, before_->c_str(), 1);
    } else {
      unsetenv(name);
    }
  }

 private:
  static constexpr const char* name = "OMPI_COMM_WORLD_SIZE";
  std::optional<std::string> before_;
};

volatile std::sig_atomic_t outer_calls = 0;
void outer_handler(int) {
  outer_calls = outer_calls + 1;
}

// A terminal that is closed (SIGHUP), and the end of a limit on the time of the CPU (SIGXCPU).
TEST(StopSignal, HearsWhatAsksForAnEnd) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGHUP, SIGXCPU}) {
    const StopSignal stop;
    EXPECT_FALSE(stop.requested()) << signal;
    std::raise(signal);
    EXPECT_TRUE(stop.requested()) << signal;
    std::raise(signal);  // patience does no harm
    EXPECT_TRUE(stop.requested()) << signal;
  }
}

TEST(StopSignal, LeavesHangUpIgnoredUnderNohup) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    const StopSignal stop;
    std::raise(SIGHUP);
    EXPECT_FALSE(stop.requested());
  }
  std::raise(SIGHUP);
  std::signal(SIGHUP, before);
}

// In a process of its own, which the second one ends.
TEST(StopSignal, HearsTheFirstInterruptAndDiesOfTheSecond) {
  EXPECT_EXIT(
      {
        const StopSignal stop("stopping\n");
        std::raise(SIGINT);
        if (!stop.requested()) std::_Exit(1);
        std::raise(SIGINT);
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGINT), "^stopping\n$");
}

TEST(StopSignal, StartsAfresh) {
  {
    const StopSignal first;
    std::raise(SIGUSR2);
  }
  EXPECT_FALSE(StopSignal().requested());
}

TEST(StopSignal, HearsTerminationWithoutMpirun) {
  const MpirunVariable variable(false);
  const StopSignal stop;
  std::raise(SIGTERM);
  EXPECT_TRUE(stop.requested());
}

TEST(StopSignal, LeavesTerminationAloneUnderMpirun) {
  const MpirunVariable variable(true);
  outer_calls = 0;
  const auto before = std::signal(SIGTERM, outer_handler);
  {
    const StopSignal stop;
    std::raise(SIGTERM);
    EXPECT_FALSE(stop.requested());
    EXPECT_EQ(outer_calls, 1);
  }
  std::signal(SIGTERM, before);
}

TEST(StopSignal, PutsBackTheHandlersItFound) {
  outer_calls = 0;
  const auto before = std::signal(SIGUSR2, outer_handler);
  { const StopSignal stop; }
  std::raise(SIGUSR2);
  EXPECT_EQ(outer_calls, 1);
  std::signal(SIGUSR2, before);
}

TEST(StopSignal, LivesOnlyOnceAtATime) {
  const StopSignal stop;
  EXPECT_THROW(StopSignal(), DistError);
  std::raise(SIGUSR2);  // and the refused one changed nothing
  EXPECT_TRUE(stop.requested());
}

}  // namespace
}  // namespace tpudist
