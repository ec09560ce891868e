#pragma once

#include <string>

namespace tpudist::test {

// Makes system calls on files fail or take long. faulty_io.cpp replaces the C library's read,
// write, open, fsync and similar functions. Link it into a test program and give the text to this
// class, or load it into any program by LD_PRELOAD (the library tpudist_faulty_io) and give the
// text in the environment variable TPUDIST_FAULTY_IO. The text is
//
//     KIND:PATH[:SWITCH]
//
// for the files whose path contains PATH; with SWITCH only while the file SWITCH exists. KIND is
// one of
//
//     interrupt      every second call of a thread ends with EINTR, and calls read or write about
//                    half of the requested bytes; with a preloaded library a timer also sends a
//                    signal every millisecond, whose handler does not restart calls. Not
//                    ftruncate, which HDF5 does not repeat
//     slow=MS        each read takes MS milliseconds
//     error=SKIPPED  reads fail with EIO, except the first SKIPPED reads
//     lock=ERRNO     flock fails with this error
//
// One object at a time. Threads may read and write meanwhile.
class FaultyIo {
 public:
  explicit FaultyIo(const std::string& text);
  ~FaultyIo();
  FaultyIo(const FaultyIo&) = delete;
  FaultyIo& operator=(const FaultyIo&) = delete;

  // The number of reads of these files.
  int reads() const;
};

}  // namespace tpudist::test
