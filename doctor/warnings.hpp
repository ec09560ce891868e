#pragma once

#include <string>
#include <vector>

#include "doctor/job_facts.hpp"

namespace tpudist {

// Something about a job that makes it slow or ends it, and what to do about it.
struct DoctorWarning {
  std::string kind;     // a short name that stays, for programs
  std::string what;     // a sentence without a full stop
  std::string advice;   // likewise
  bool broken = false;  // nothing can be trained this way
};

// Memory that a rank is taken to need at least: what the demo's five members take, rounded up.
inline constexpr std::int64_t kRankMemory = std::int64_t{1} << 30;
// Space that a run folder should have left: checkpoints and predictions of a few runs.
inline constexpr std::int64_t kRunSpace = std::int64_t{1} << 30;

// What is wrong, broken things first. A pure function.
std::vector<DoctorWarning> doctor_warnings(const JobFacts& facts);

}  // namespace tpudist
