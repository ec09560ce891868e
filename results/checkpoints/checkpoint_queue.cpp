#include "results/checkpoints/checkpoint_queue.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/log.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"

namespace tpudist {
namespace {

// If the folder was removed during the run, later checkpoints can still be written.
void make_folder_again(const std::filesystem::path& folder) {
  std::error_code error;  // if it cannot be created, writing the file fails and reports why
  if (std::filesystem::create_directories(folder, error)) {
    spdlog::warn("{}: the folder was gone and is made again", folder.string());
  }
}

}  // namespace

CheckpointQueue::CheckpointQueue(const ParameterTable& table, FileSystem& files,
                                 std::function<void()> advance)
    : table_(table), files_(files), advance_(std::move(advance)) {}

CheckpointQueue::~CheckpointQueue() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Checkpoint& CheckpointQueue::copy(Kind kind) {
  MutexLock lock(mutex_);
  while (std::ranges::find(jobs_, kind, &Job::kind) != jobs_.end()) changed_.wait(lock);
  return copy_of(kind);
}

void CheckpointQueue::write(Kind kind, std::filesystem::path path, std::function<void()> then) {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  {
    const MutexLock lock(mutex_);
    jobs_.push_back({kind, std::move(path), std::move(then)});
  }
  changed_.notify_all();
}

void CheckpointQueue::wait() {
  MutexLock lock(mutex_);
  while (!jobs_.empty()) changed_.wait(lock);
}

std::vector<CheckpointQueue::Result> CheckpointQueue::take_results() {
  const MutexLock lock(mutex_);
  return std::exchange(results_, {});
}

// Steps have priority. A step that waits for data leaves its core to this thread, even if the data
// wait for HDF5, which one thread uses at a time.
void CheckpointQueue::work() {
  give_way_to_others();
  MutexLock lock(mutex_);
  for (;;) {
    while (!stopping_ && jobs_.empty()) changed_.wait(lock);
    if (jobs_.empty()) return;
    const Job& job = jobs_.front();  // stays in place while others are added
    lock.unlock();
    Result result = result_of(job);
    lock.lock();
    jobs_.pop_front();
    results_.push_back(std::move(result));
    changed_.notify_all();
  }
}

CheckpointQueue::Result CheckpointQueue::result_of(const Job& job) {
  const auto begin = std::chrono::steady_clock::now();
  const Checkpoint& checkpoint = copy_of(job.kind);
  Result result{job.kind, checkpoint.step, job.path, 0, ""};
  try {
    make_folder_again(job.path.parent_path());
    save_checkpoint(job.path, checkpoint, table_, files_);
    advance_();
    job.then();
    advance_();
  } catch (const std::exception& error) {
    result.error = error.what();
  }
  result.seconds = seconds_since(begin);
  return result;
}

}  // namespace tpudist
