#pragma once

#include <string>

namespace tpudist::test {

// Makes calls of the system on files behave as on a bad day. faulty_io.cpp stands in front of the C
// library's read, write, open, fsync and the like: linked into a test program, where this class
// says what is to happen, or loaded into any program by LD_PRELOAD (the library tpudist_faulty_io),
// where the environment variable TPUDIST_FAULTY_IO says it. Either way the text is
//
//     KIND:PATH[:SWITCH]
//
// for the files whose path contains PATH, and only while the file SWITCH is there, if one is given.
// KIND is
//
//     interrupt      every second call of a thread ends with EINTR, and calls read or write about
//                    half of what was requested; a preloaded library also has a timer send a
//                    signal every millisecond, whose handler does not restart calls. Not
//                    ftruncate, which HDF5 does not repeat
//     slow=MS        each read takes MS milliseconds
//     error=SKIPPED  reads fail with EIO, except the first SKIPPED ones
//     lock=ERRNO     flock fails with this error
//
// One at a time. Threads may read and write meanwhile.
class FaultyIo {
 public:
  explicit FaultyIo(const std::string& text);
  ~FaultyIo();
  FaultyIo(const FaultyIo&) = delete;
  FaultyIo& operator=(const FaultyIo&) = delete;

  // How many reads were seen of the files that are meant.
  int reads() const;
};

}  // namespace tpudist::test
