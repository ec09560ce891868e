#pragma once

#include <string>
#include <vector>

#include "doctor/job_facts.hpp"

namespace tpudist {

// A problem that makes a job slow or ends it, and what to do about it.
struct DoctorWarning {
  std::string kind;     // a short, stable name, for programs
  std::string what;     // one sentence without a full stop
  std::string advice;   // likewise
  bool broken = false;  // training is impossible this way
};

// Least memory a rank is assumed to need: that of the demo's five members, rounded up.
inline constexpr std::int64_t kRankMemory = std::int64_t{1} << 30;
// Space that a run folder should have left: checkpoints and predictions of a few runs.
inline constexpr std::int64_t kRunSpace = std::int64_t{1} << 30;

// All problems, the broken ones first. A pure function.
std::vector<DoctorWarning> doctor_warnings(const JobFacts& facts);

}  // namespace tpudist
