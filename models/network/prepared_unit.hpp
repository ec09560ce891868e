#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "models/inputs/encoder.hpp"
#include "models/layers/layer.hpp"
#include "models/operators/backend.hpp"
#include "models/plans/plan.hpp"

// For .cpp files of models/ only: it includes ATen.

namespace tpudist {

// A plan together with what the layers of a network need of a unit to run on it. Immutable.
struct PreparedPlan {
  std::shared_ptr<const Plan> plan;
  UnitTensors tensors;
  PlanContext context;
  std::shared_ptr<const Backend> backend;  // of all plans that were prepared together
};

// What a composed network needs of a unit besides its weights, for all members. It holds the unit
// on its whole plan, and on the part of the plan that differences between scores depend on
// (needed_part). Each is made on first use. Thread-safe.
class PreparedUnit {
 public:
  using Make = std::function<std::shared_ptr<const PreparedPlan>()>;

  std::shared_ptr<const PreparedPlan> whole(const Make& make) const { return whole_.get(make); }
  std::shared_ptr<const PreparedPlan> needed(const Make& make) const { return needed_.get(make); }

 private:
  class Once {
   public:
    std::shared_ptr<const PreparedPlan> get(const Make& make) const {
      std::call_once(once_, [&] { part_ = make(); });
      return part_;
    }

   private:
    mutable std::once_flag once_;
    mutable std::shared_ptr<const PreparedPlan> part_;
  };

  Once whole_, needed_;
};

}  // namespace tpudist
