#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/descriptor.hpp"
#include "core/thread_pool.hpp"
#include "data/loading/cache_file.hpp"
#include "data/loading/cache_folder.hpp"

namespace tpudist {

// How to make a missing NodeFile.
struct NodeFileSource {
  std::uint64_t key = 0;                        // hash of everything that determines its bytes
  std::function<std::uint64_t()> bytes;         // estimate of its size; called first
  std::function<void(CacheFileWriter&)> write;  // writes the arrays, then calls
                                                // CacheFileWriter::finish
};

// A cache file that the processes of a node share. The first process that needs the file makes it;
// the others wait or do other work meanwhile. Holds a lock, so that no other process removes the
// file. Not thread-safe.
class NodeFile {
 public:
  // `keep` false: the last process that uses the file removes it.
  NodeFile(std::shared_ptr<const CacheFolder> folder, std::string name, bool keep);
  ~NodeFile();
  NodeFile(NodeFile&&) noexcept = default;
  NodeFile& operator=(NodeFile&&) = delete;

  // Opens the file, or makes it if it is missing, damaged or of another key. `patience_s`: how long
  // to wait for another process that is making the file without progress; 0: do not wait. Returns
  // false if another process is making the file and patience_s is 0. Throws IoError if the file can
  // be neither opened nor made, and the exceptions of the source.
  bool attach(const NodeFileSource& source, int patience_s, ThreadPool& pool);

  // Null until attach() has returned true. May outlive this object.
  const std::shared_ptr<const CacheFile>& file() const { return file_; }

 private:
  bool take_existing(std::uint64_t key, ThreadPool& pool);
  void write(const NodeFileSource& source, NewCacheFile& fresh) const;
  void wait_for_writer(int patience_s) const;

  std::shared_ptr<const CacheFolder> folder_;
  std::string name_;
  bool keep_;
  Descriptor lock_;  // shared lock on the file while it is used
  std::shared_ptr<const CacheFile> file_;
};

// A file name from the arguments; colons become hyphens.
std::string node_file_name(const std::string& collection, const std::string& what,
                           std::uint64_t key);

}  // namespace tpudist
