#include "data/loading/metis_segments.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "tests/support/thrown.hpp"

namespace tpudist::test {
namespace {

using ::testing::HasSubstr;

Graph random_tree(std::int64_t nodes) {
  CounterRng random(5);
  std::vector<std::int32_t> edges;
  for (std::int64_t i = 1; i < nodes; ++i)
    edges.insert(edges.end(),
                 {static_cast<std::int32_t>(i),
                  static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(i)))});
  Graph graph;
  graph.name = "tree";
  graph.nodes = nodes;
  graph.edges = nodes - 1;
  graph.edge_index = std::move(edges);
  return graph;
}

class MetisProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_metis()) GTEST_SKIP() << "built without METIS";
  }

  // Runs `other` again and again in another thread while the graph is cut so many times.
  template <typename Other>
  void cut_beside(int times, Other other) {
    std::jthread beside([&](std::stop_token stop) {
      while (!stop.stop_requested()) other();
    });
    for (int i = 0; i < times; ++i) EXPECT_EQ(metis_segments(graph_, 30), expected_) << i;
  }

  const Graph graph_ = random_tree(2000);
  const std::vector<std::int32_t> expected_ =
      has_metis() ? metis_segments(graph_, 30) : std::vector<std::int32_t>();
};

std::atomic<std::int64_t> counted_signals;
void count_signal(int) {
  ++counted_signals;
}

// METIS has handlers of its own for these signals.
TEST_F(MetisProcess, LeavesSignalsAlone) {
  for (const int signal : {SIGTERM, SIGABRT}) {
    struct sigaction counting {
    }, before{}, after{};
    counting.sa_handler = count_signal;
    counting.sa_flags = SA_RESTART;
    ASSERT_EQ(sigaction(signal, &counting, &before), 0);
    counted_signals = 0;
    std::int64_t sent = 0;
    cut_beside(20, [&] {
      ASSERT_EQ(std::raise(signal), 0);
      ++sent;
    });
    ASSERT_EQ(sigaction(signal, &before, &after), 0);
    EXPECT_EQ(counted_signals, sent);
    EXPECT_GT(sent, 0);
    EXPECT_EQ(after.sa_handler, count_signal);
    EXPECT_EQ(after.sa_flags & (SA_RESTART | static_cast<int>(SA_RESETHAND)), SA_RESTART);
  }
}

// Also the thread that cuts: nothing stays blocked, and a wait that a signal interrupts goes on.
TEST_F(MetisProcess, GoesOnAfterASignalToItsThread) {
  struct sigaction counting {
  }, before{};
  counting.sa_handler = count_signal;
  ASSERT_EQ(sigaction(SIGUSR1, &counting, &before), 0);
  counted_signals = 0;
  const pthread_t own = pthread_self();
  cut_beside(20, [&] { pthread_kill(own, SIGUSR1); });
  EXPECT_GT(counted_signals, 0);
  counted_signals = 0;
  ASSERT_EQ(std::raise(SIGUSR1), 0);
  EXPECT_EQ(counted_signals, 1);
  sigaction(SIGUSR1, &before, nullptr);
}

// Where nobody wants to know of children, their results are known all the same.
TEST_F(MetisProcess, NeedsNoStatusOfItsChild) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(metis_segments(graph_, 30), expected_);
  std::signal(SIGCHLD, before);
}

TEST_F(MetisProcess, DrawsNoRandomNumberOfThisProcess) {
  std::srand(7);
  const int first = std::rand(), second = std::rand();
  std::srand(7);
  EXPECT_EQ(std::rand(), first);
  EXPECT_EQ(metis_segments(graph_, 30), expected_);
  EXPECT_EQ(std::rand(), second);
}

// A child of this process, 0 if there is none.
pid_t child_process() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string stat;
    std::getline(std::ifstream(entry.path() / "stat"), stat);
    pid_t parent = 0;
    char state = 0;
    const std::size_t end = stat.rfind(')');
    if (end == std::string::npos) continue;
    if (std::istringstream(stat.substr(end + 1)) >> state >> parent; parent == getpid())
      return std::stoi(name);
  }
  return 0;
}

// A stop of the whole group reaches the child, too: it is made again, but not for ever.
TEST_F(MetisProcess, IsMadeAgainWhereItIsKilled) {
  pid_t last = 0;
  int killed = 0, seen = 0;
  cut_beside(20, [&] {
    const pid_t found = child_process();
    if (found == 0 || found == last) return;
    last = found;
    if (++seen % 2 == 1 && kill(found, SIGKILL) == 0) ++killed;
  });
  EXPECT_GT(killed, 0);

  const std::jthread killer([](std::stop_token stop) {
    while (!stop.stop_requested()) {
      if (const pid_t found = child_process(); found > 0) kill(found, SIGKILL);
    }
  });
  const Graph large = random_tree(200'000);  // so that every child is seen
  const std::string message = message_of<Error>([&] { metis_segments(large, 30); });
  EXPECT_THAT(message, HasSubstr("tree: METIS was ended by signal 9"));
  EXPECT_THAT(message, HasSubstr("give data.segments.by=consecutive"));
}

}  // namespace
}  // namespace tpudist::test
