#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/file_system.hpp"
#include "core/mutex.hpp"
#include "core/parameters/parameter_table.hpp"
#include "results/checkpoints/checkpoint.hpp"

namespace tpudist {

// Writes checkpoints in a thread of its own while training continues. The thread writes a copy of
// the state. There is one copy per kind: a second checkpoint of a kind waits for the first. For use
// by one thread; the writing thread calls no MPI and nothing that is not thread-safe.
class CheckpointQueue {
 public:
  enum class Kind { regular, best };

  // The result of writing a checkpoint.
  struct Result {
    Kind kind = Kind::regular;
    std::int64_t step = 0;
    std::filesystem::path path;
    double seconds = 0;  // from the start of writing
    std::string error;   // "": it is on the disk
  };

  // Borrows `table` and `files`. The writing thread calls `advance` after each part that it writes.
  CheckpointQueue(
      const ParameterTable& table, FileSystem& files, std::function<void()> advance = [] {});
  // Waits until everything is written.
  ~CheckpointQueue();
  CheckpointQueue(const CheckpointQueue&) = delete;
  CheckpointQueue& operator=(const CheckpointQueue&) = delete;

  // The copy of this kind, for the caller to fill. Waits until the previous checkpoint of the kind
  // is written, and reuses its memory.
  Checkpoint& copy(Kind kind);
  // Starts writing that copy to `path`, and creates the folder if needed. The writing thread calls
  // `then` when the file is in place.
  void write(
      Kind kind, std::filesystem::path path, std::function<void()> then = [] {});

  void wait();
  // The results since the last call, in order.
  std::vector<Result> take_results();

 private:
  struct Job {
    Kind kind;
    std::filesystem::path path;
    std::function<void()> then;
  };

  void work();
  Result result_of(const Job& job) TPUDIST_EXCLUDES(mutex_);
  Checkpoint& copy_of(Kind kind) { return copies_[static_cast<std::size_t>(kind)]; }

  const ParameterTable& table_;
  FileSystem& files_;
  const std::function<void()> advance_;

  // One per kind. It belongs to the writing thread while jobs_ has the kind, else to the caller.
  std::array<Checkpoint, 2> copies_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_ TPUDIST_GUARDED_BY(mutex_);  // the first one is being written
  std::vector<Result> results_ TPUDIST_GUARDED_BY(mutex_);
  bool stopping_ TPUDIST_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // starts with the first job
};

}  // namespace tpudist
