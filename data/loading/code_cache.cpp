#include "data/loading/code_cache.hpp"

#include <utility>
#include <variant>

#include "core/random.hpp"

namespace tpudist {

std::uint64_t ConfigChunk::bytes() const {
  return std::visit([](const auto& values) { return values.bytes(); }, codes) + features.bytes();
}

struct CodeCache::Flight {
  std::condition_variable landed;
  bool done TPUDIST_GUARDED_BY(&CodeCache::mutex_) = false;
  Handle chunk;  // chunk and error belong to the reading thread until `done`
  std::exception_ptr error;
};

std::size_t CodeCache::KeyHash::operator()(const Key& key) const {
  return mix_key({static_cast<std::uint64_t>(key.graph), static_cast<std::uint64_t>(key.chunk)});
}

CodeCache::CodeCache(std::uint64_t capacity_bytes, Load load)
    : capacity_(capacity_bytes), load_(std::move(load)) {}
CodeCache::~CodeCache() = default;

CodeCache::Handle CodeCache::get(int graph, std::int64_t chunk) {
  const Key key{graph, chunk};
  MutexLock lock(mutex_);
  if (const auto found = kept_at_.find(key); found != kept_at_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    ++statistics_.hits;
    return found->second->chunk;
  }
  const auto found = flights_.find(key);
  if (found == flights_.end()) return load(key);

  const std::shared_ptr<Flight> flight = found->second;
  while (!flight->done) flight->landed.wait(lock);
  if (flight->error) std::rethrow_exception(flight->error);
  ++statistics_.hits;
  return flight->chunk;
}

CodeCache::Handle CodeCache::load(const Key& key) {
  const auto flight = std::make_shared<Flight>();
  flights_.emplace(key, flight);
  ++statistics_.loads;
  mutex_.unlock();
  try {
    flight->chunk = std::make_shared<const ConfigChunk>(load_(key.graph, key.chunk));
  } catch (...) {
    flight->error = std::current_exception();
  }
  mutex_.lock();
  if (flight->chunk) keep(key, flight->chunk);
  flights_.erase(key);
  flight->done = true;
  flight->landed.notify_all();
  if (flight->error) std::rethrow_exception(flight->error);
  return flight->chunk;
}

void CodeCache::keep(const Key& key, const Handle& chunk) {
  const std::uint64_t size = chunk->bytes();
  if (size > capacity_) return;
  while (statistics_.bytes + size > capacity_) {
    statistics_.bytes -= kept_.back().chunk->bytes();
    kept_at_.erase(kept_.back().key);
    kept_.pop_back();
  }
  kept_.push_front({key, chunk});
  kept_at_.emplace(key, kept_.begin());
  statistics_.bytes += size;
}

CodeCache::Statistics CodeCache::statistics() const {
  const MutexLock lock(mutex_);
  Statistics statistics = statistics_;
  statistics.chunks = kept_.size();
  return statistics;
}

}  // namespace tpudist
