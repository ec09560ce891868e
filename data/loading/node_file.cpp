#include "data/loading/node_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "core/duration.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/numbers.hpp"

namespace tpudist {
namespace {

constexpr int kMostWrites = 3;  // of a file that disappears repeatedly

}  // namespace

NodeFile::NodeFile(std::shared_ptr<const CacheFolder> folder, std::string name, bool keep)
    : folder_(std::move(folder)), name_(std::move(name)), keep_(keep) {}

NodeFile::~NodeFile() {
  if (keep_ || !lock_) return;
  try {
    folder_->remove_if_last(name_, lock_);
  } catch (const IoError& error) {
    spdlog::debug("{}", error.what());
  }
}

bool NodeFile::attach(const NodeFileSource& source, int patience_s, ThreadPool& pool) {
  for (int writes = 0; writes < kMostWrites;) {
    if (take_existing(source.key, pool)) return true;
    std::optional<NewCacheFile> fresh = folder_->begin(name_);
    if (!fresh) {
      if (patience_s == 0) return false;
      wait_for_writer(patience_s);
      continue;
    }
    if (take_existing(source.key, pool)) return true;  // another process has just written it
    write(source, *fresh);
    ++writes;
  }
  throw IoError(fmt::format("{} was written {} times and is gone or damaged each time",
                            folder_->path_of(name_).string(), kMostWrites));
}

bool NodeFile::take_existing(std::uint64_t key, ThreadPool& pool) {
  lock_ = folder_->open(name_);
  if (!lock_) return false;
  try {
    file_ = CacheFile::open(lock_, folder_->path_of(name_), key, pool);
  } catch (const DataError& error) {
    spdlog::warn("{}; it is made anew", error.what());
    lock_ = {};
    return false;
  }
  spdlog::debug("shares {} ({})", folder_->path_of(name_).string(), format_bytes(file_->bytes()));
  return true;
}

void NodeFile::write(const NodeFileSource& source, NewCacheFile& fresh) const {
  const auto begin = std::chrono::steady_clock::now();
  folder_->make_room(source.bytes());
  CacheFileWriter writer(fresh.descriptor(), fresh.path());
  source.write(writer);
  fresh.publish();
  spdlog::debug("wrote {} in {:.1f} s", folder_->path_of(name_).string(), seconds_since(begin));
}

// A killed writer releases its file at once, so only a stopped writer can keep others waiting.
void NodeFile::wait_for_writer(int patience_s) const {
  const std::uint64_t before = folder_->progress_of(name_);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(patience_s);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (folder_->progress_of(name_) != before) return;
    if (folder_->begin(name_)) return;
  }
  throw IoError(fmt::format("another process has begun to write {} and has not got on for {} s",
                            folder_->path_of(name_).string(), patience_s));
}

std::string node_file_name(const std::string& collection, const std::string& what,
                           std::uint64_t key) {
  std::string name = fmt::format("{}.{}.{}.cache", collection, what, to_hex(key));
  std::ranges::replace(name, ':', '-');
  return name;
}

}  // namespace tpudist
