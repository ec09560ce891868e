#include <gmock/gmock.h>
#include <mpi.h>

#include <cstdio>
#include <memory>
#include <string>

#include "tests/support/test_file.hpp"

namespace {

// Prints failures at once and nothing else, with the number of the rank: where one rank fails the
// others may wait for it for good, and then nobody would print at the end.
class FailurePrinter : public ::testing::EmptyTestEventListener {
 public:
  explicit FailurePrinter(int rank) : rank_(rank) {}

  void OnTestStart(const ::testing::TestInfo& test) override {
    // Kept here: asking UnitTest for it while a failure is reported locks up.
    test_ = std::string(test.test_suite_name()) + "." + test.name();
  }

  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "[rank %d] %s: %s:%d\n%s\n", rank_, test_.c_str(),
                 result.file_name() ? result.file_name() : "unknown file", result.line_number(),
                 result.message());
  }

 private:
  int rank_;
  std::string test_;
};

// Leaves the usual output to rank 0 and only failures to the others.
void print_once(int rank) {
  ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rank == 0) return;
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(std::make_unique<FailurePrinter>(rank).release());  // the list owns it
}

}  // namespace

int main(int argc, char** argv) {
  tpudist::test::fix_rapidcheck_seed();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  ::testing::InitGoogleMock(&argc, argv);
  print_once(rank);
  int failed = provided < MPI_THREAD_FUNNELED || !tpudist::test::hold_to_test_file(argc, argv) ||
               RUN_ALL_TESTS() != 0;

  // Every rank exits alike, so that a failure on any of them is one of the whole test.
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
