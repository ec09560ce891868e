#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "models/operators/backend.hpp"

// What an operator keeps for its backward pass besides tensors, as values of
// AutogradContext::saved_data. For .cpp files of models/operators/ only.

namespace tpudist {

// A borrowed object, which must outlive the recorded graph.
template <typename T>
std::int64_t borrow(const T* object) {
  return reinterpret_cast<std::int64_t>(object);
}
template <typename T>
T& borrowed(const c10::IValue& value) {
  return *reinterpret_cast<T*>(value.toInt());
}

// A backend, whose pool and device must outlive the recorded graph.
inline void keep_backend(torch::autograd::AutogradContext* context, const Backend& backend) {
  context->saved_data["pool"] = borrow(&backend.pool);
  context->saved_data["device"] = borrow(backend.device);
}
inline Backend kept_backend(torch::autograd::AutogradContext* context) {
  return {borrowed<ThreadPool>(context->saved_data["pool"]),
          reinterpret_cast<const DeviceOperators*>(context->saved_data["device"].toInt())};
}

// An object that lives as long as the recorded graph.
template <typename T>
struct Kept : torch::CustomClassHolder {
  explicit Kept(std::shared_ptr<const T> object) : object(std::move(object)) {}
  const std::shared_ptr<const T> object;
};
template <typename T>
c10::IValue keep(std::shared_ptr<const T> object) {
  return c10::IValue::make_capsule(c10::make_intrusive<Kept<T>>(std::move(object)));
}
template <typename T>
std::shared_ptr<const T> kept(const c10::IValue& value) {
  const auto holder = value.toCapsule();
  return static_cast<const Kept<T>*>(holder.get())->object;
}

}  // namespace tpudist
