#include "dist/collectives/error_exchange.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace tpudist {
namespace {

// No other message travels on MPI_COMM_WORLD: communicators use copies of it.
constexpr int kTag = 85;
constexpr std::chrono::milliseconds kPause{1};

// The exit code, whether the error was received from another rank, and the message.
std::string encode(const RankError& error) {
  return std::to_string(error.exit_code) + (error.heard ? "h" : "o") + error.message;
}

RankError decode(int rank, const std::string& text) {
  RankError error;
  error.rank = rank;
  const std::size_t mark = text.find_first_of("ho");
  if (mark == 0 || mark == std::string::npos) return error;
  error.exit_code = std::stoi(text.substr(0, mark));
  error.heard = text[mark] == 'h';
  error.message = text.substr(mark + 1);
  return error;
}

}  // namespace

ErrorExchange::ErrorExchange(RankError mine) : mine_(std::move(mine)) {
  // MPI errors in these messages must not end the process before it has printed.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &mine_.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  message_ = encode(mine_);
  requests_.assign(ranks_, MPI_REQUEST_NULL);
  for (int rank = 0; rank < ranks_; ++rank) {
    if (rank == mine_.rank) continue;
    MPI_Isend(message_.data(), static_cast<int>(message_.size()), MPI_CHAR, rank, kTag,
              MPI_COMM_WORLD, &requests_[rank]);
  }
}

bool ErrorExchange::receive(std::vector<RankError>& errors) {
  MPI_Status status;
  int there = 0, size = 0;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there) {
    return false;
  }
  MPI_Get_count(&status, MPI_CHAR, &size);
  std::string text(static_cast<std::size_t>(size), '\0');
  if (MPI_Recv(text.data(), size, MPI_CHAR, status.MPI_SOURCE, kTag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE) != MPI_SUCCESS) {
    return false;
  }
  errors.push_back(decode(status.MPI_SOURCE, text));
  return true;
}

std::vector<RankError> ErrorExchange::wait(std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::vector<RankError> errors{mine_};
  int sent = 0;
  // MPI sends a long message only inside calls of MPI, so the loop also waits for the sends.
  while (std::ssize(errors) < ranks_ || !sent) {
    if (receive(errors)) continue;
    if (MPI_Testall(ranks_, requests_.data(), &sent, MPI_STATUSES_IGNORE) != MPI_SUCCESS) break;
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(kPause);
  }
  std::ranges::sort(errors, {}, &RankError::rank);
  return errors;
}

}  // namespace tpudist
