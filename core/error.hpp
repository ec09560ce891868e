#pragma once

#include <stdexcept>
#include <string>

namespace tpudist {

// The kinds of failure that a caller of the program can tell apart. The values are the exit codes.
enum class ErrorKind {
  failed = 1,    // anything else: I/O, a library, a rank that died
  usage = 2,     // wrong command line or configuration
  data = 3,      // input data that violate their schema
  stopped = 85,  // stopped on request, with a checkpoint to resume from
};

// Base of every exception that tpudist throws. The message says what, where and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);
  ErrorKind kind() const noexcept { return kind_; }
  int exit_code() const noexcept { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

// Wrong command line or configuration.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ErrorKind::usage, message) {}
};

// Input data that violate their schema; the message names file, array and index.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ErrorKind::data, message) {}
};

// A file that cannot be read or written; the message has the path and the system's reason.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(ErrorKind::failed, message) {}
};

// Another process, or another part of this one, holds a lock. The message says who.
class InUseError : public Error {
 public:
  explicit InUseError(const std::string& message) : Error(ErrorKind::failed, message) {}
};

// Communication between ranks failed, or ranks disagree.
class DistError : public Error {
 public:
  explicit DistError(const std::string& message) : Error(ErrorKind::failed, message) {}
};

}  // namespace tpudist
