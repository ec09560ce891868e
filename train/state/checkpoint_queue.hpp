#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/file_system.hpp"
#include "models/parameters/parameter_table.hpp"
#include "train/state/checkpoint.hpp"

namespace tpudist {

// Writes checkpoints in a thread of its own while training goes on. What is written is a copy of the
// state, and there is one copy for each kind: a second checkpoint of a kind waits for the first one.
// Used by one thread; the other one calls neither MPI nor anything that is not thread-safe.
class CheckpointQueue {
 public:
  enum class Kind { regular, best };

  // What became of a checkpoint.
  struct Result {
    Kind kind = Kind::regular;
    std::int64_t step = 0;
    std::filesystem::path path;
    double seconds = 0;        // from when its turn came
    std::exception_ptr error;  // null: it is on the disk
  };

  // Borrows `table` and `files`. `advance` is called, in the other thread, whenever a part is done.
  CheckpointQueue(
      const ParameterTable& table, FileSystem& files, std::function<void()> advance = [] {});
  // Waits until all that was given is written.
  ~CheckpointQueue();
  CheckpointQueue(const CheckpointQueue&) = delete;
  CheckpointQueue& operator=(const CheckpointQueue&) = delete;

  // The copy of this kind, to be filled, once the one before is written. It keeps its memory.
  Checkpoint& copy(Kind kind);
  // Has that copy written to `path`, whose folder is made if it is not there. `then` is called in the
  // other thread when the file is in place.
  void write(
      Kind kind, std::filesystem::path path, std::function<void()> then = [] {});

  void wait();
  // What was done since the last call, in its order.
  std::vector<Result> take_results();

 private:
  struct Job {
    Kind kind;
    std::filesystem::path path;
    std::function<void()> then;
  };

  void work();
  Result result_of(const Job& job);
  Checkpoint& copy_of(Kind kind) { return copies_[static_cast<std::size_t>(kind)]; }

  const ParameterTable& table_;
  FileSystem& files_;
  const std::function<void()> advance_;

  std::array<Checkpoint, 2>
      copies_;  // by kind; the other thread's while there is a job of the kind
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first one is under way
  std::vector<Result> results_;
  bool stopping_ = false;
  std::thread thread_;  // begins with the first job
};

}  // namespace tpudist
