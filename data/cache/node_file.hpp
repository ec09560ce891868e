#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/descriptor.hpp"
#include "core/thread_pool.hpp"
#include "data/cache/cache_file.hpp"
#include "data/cache/cache_folder.hpp"

namespace tpudist {

// What a NodeFile is made from, where no process has made it yet.
struct NodeFileSource {
  std::uint64_t key = 0;                        // of everything that decides its bytes
  std::function<std::uint64_t()> bytes;         // about as many as it will have; called first
  std::function<void(CacheFileWriter&)> write;  // arrays, then CacheFileWriter::finish
};

// A cache file that processes of a node share: the first that wants it makes it, the others wait or
// turn to something else meanwhile. Holds a lock on the file, by which no other process removes it.
// Not thread-safe.
class NodeFile {
 public:
  // `keep` false: the last process that uses the file removes it.
  NodeFile(std::shared_ptr<const CacheFolder> folder, std::string name, bool keep);
  ~NodeFile();
  NodeFile(NodeFile&&) noexcept = default;
  NodeFile& operator=(NodeFile&&) = delete;

  // Takes the file, or makes it where it is not there, damaged or of another key. `patience_s`: how
  // long to wait for another process that makes it and does not get on; 0: not at all. Returns
  // false where another process makes it and nothing was to be waited for. Throws IoError where the
  // file cannot be had, and what the source throws.
  bool attach(const NodeFileSource& source, int patience_s, ThreadPool& pool);

  // Null before attach() has returned true. May outlive this object.
  const std::shared_ptr<const CacheFile>& file() const { return file_; }

 private:
  bool take_existing(std::uint64_t key, ThreadPool& pool);
  void write(const NodeFileSource& source, NewCacheFile& fresh) const;
  void wait_for_writer(int patience_s) const;

  std::shared_ptr<const CacheFolder> folder_;
  std::string name_;
  bool keep_;
  Descriptor lock_;  // on the file, shared, while it is used
  std::shared_ptr<const CacheFile> file_;
};

// A name for a file that these describe: a colon in a text becomes a hyphen.
std::string node_file_name(const std::string& collection, const std::string& what,
                           std::uint64_t key);

}  // namespace tpudist
