#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <vector>

namespace tpudist {

// The error that ended the work of a rank.
struct RankError {
  int rank = 0;
  int exit_code = 1;
  // The rank only received this error from another rank, which reports it itself.
  bool heard = false;
  std::string message;
};

// Mixed into the error that run_on_all_ranks throws on ranks that did not fail themselves.
class HeardFromOtherRank {
 public:
  virtual ~HeardFromOtherRank() = default;
};

// Exchanges errors between failing ranks, so that one rank can print all errors before the job
// ends. It sends messages on MPI_COMM_WORLD and calls no collective: healthy ranks may be waiting
// in one and never come here. MPI must be initialised and not finalised; call only from the thread
// that initialised MPI. There is one exchange per process, and it must live until the process ends.
class ErrorExchange {
 public:
  // Sets `rank` of `mine` and sends it to all other ranks.
  explicit ErrorExchange(RankError mine);
  ErrorExchange(const ErrorExchange&) = delete;
  ErrorExchange& operator=(const ErrorExchange&) = delete;

  // Waits until every rank has sent an error, or until `patience` ends. Returns the errors known by
  // then in rank order, this rank's included. Never throws: if MPI fails, it returns what it has.
  std::vector<RankError> wait(std::chrono::milliseconds patience);

  int rank() const { return mine_.rank; }
  int ranks() const { return ranks_; }

 private:
  // Receives one message, if one has arrived.
  bool receive(std::vector<RankError>& errors);

  RankError mine_;
  int ranks_ = 1;
  std::string message_;                // the message being sent
  std::vector<MPI_Request> requests_;  // of the sends, which may never be received
};

}  // namespace tpudist
