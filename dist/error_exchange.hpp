#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

namespace tpudist {

// The error that ended the work of one rank.
struct RankError {
  int rank = 0;
  int exit_code = 1;
  // The rank only heard of it: the error is another rank's, which reports it by itself.
  bool heard = false;
  std::string message;
};

// Mixed into the error that run_on_all_ranks throws on ranks that did not fail themselves.
class HeardFromOtherRank {
 public:
  virtual ~HeardFromOtherRank() = default;
};

// Tells ranks that fail of each other, so that one of them can print the errors of all before the
// job ends. It sends messages from rank to rank on MPI_COMM_WORLD and calls no collective, because
// healthy ranks may be waiting in one and never come here. Needs MPI between its initialisation and
// its end, in the thread that initialised it. One for each process, to live until the process ends.
class ErrorExchange {
 public:
  // Sends `mine` to all other ranks, its `rank` filled in.
  explicit ErrorExchange(RankError mine);
  ErrorExchange(const ErrorExchange&) = delete;
  ErrorExchange& operator=(const ErrorExchange&) = delete;

  // Waits until every rank has sent an error, or `patience` is over. Returns what is known by then,
  // this rank's own error included, in rank order. Never throws: where MPI fails, it returns what
  // it has.
  std::vector<RankError> wait(std::chrono::milliseconds patience);

  int rank() const { return mine_.rank; }
  int ranks() const { return ranks_; }

 private:
  // Takes one message, if there is one.
  bool receive(std::vector<RankError>& errors);

  RankError mine_;
  int ranks_ = 1;
  std::string message_;                // what is being sent
  std::vector<MPI_Request> requests_;  // of the sends, which nobody may ever receive
};

}  // namespace tpudist
