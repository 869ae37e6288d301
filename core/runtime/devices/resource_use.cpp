#include "runtime/devices/resource_use.hpp"

namespace kiln {

ResourceUse::Use ResourceUse::begin(const DeviceInfo& device, const std::string& user) {
  Use use(this, user);
  const std::lock_guard lock(mutex_);
  for (const std::string& name : {device.shared_resource, device.physical_id}) {
    if (name.empty()) continue;
    Resource& resource = resources_[name];
    const bool first_of_user = resource.users[user]++ == 0;
    const bool shared = resource.users.size() > 1;
    if (first_of_user && shared) ++resource.overlaps;
    use.held_.push_back({name, resource.overlaps, shared});
  }
  return use;
}

bool ResourceUse::Use::contended() const {
  const std::lock_guard lock(owner_->mutex_);
  for (const Held& held : held_) {
    if (held.was_shared || owner_->resources_[held.resource].overlaps != held.overlaps) return true;
  }
  return false;
}

ResourceUse::Use::~Use() {
  if (owner_ == nullptr) return;
  const std::lock_guard lock(owner_->mutex_);
  for (const Held& held : held_) {
    Resource& resource = owner_->resources_[held.resource];
    const auto at = resource.users.find(user_);
    if (--at->second == 0) resource.users.erase(at);
  }
}

bool share_a_resource(const DeviceInfo& a, const DeviceInfo& b) noexcept {
  return (!a.shared_resource.empty() && a.shared_resource == b.shared_resource) ||
         (!a.physical_id.empty() && a.physical_id == b.physical_id);
}

}  // namespace kiln
