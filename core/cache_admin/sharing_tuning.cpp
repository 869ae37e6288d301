// Tuning records in remotes: one object for each device, signed and checked as a program is.
//
// The object is that of bundle_format.hpp. Its key material names the device; its payload is the text of the records.
// It is in no index, because its name follows from the device.
#include "base/os/private_folder.hpp"
#include "cache/bundle_format.hpp"
#include "cache/entry_format.hpp"
#include "cache/manifest.hpp"
#include "cache_admin/sharing.hpp"

#include <kiln/digest.hpp>

#include <algorithm>
#include <utility>

namespace kiln {
namespace {

// Everything that two machines must share so that measurements of one are of use to the other.
AskedProgram tuning_of(const DeviceInfo& device) {
  KeyEncoder material;
  material.field("kind", tuning_format);
  for (const auto& [name, value] : device.device_identity) material.field("device." + name, value);
  for (const auto& [name, value] : device.driver_identity) material.field("driver." + name, value);
  for (const auto& [name, value] : device.speed_identity) material.field("speed." + name, value);
  material.field("lanes", device.simd_lanes);
  return {device_folder_name(device), material.digest(), material.material()};
}

Result<std::vector<std::byte>> tuning_object(const AskedProgram& name, std::string_view text, const CacheConfig& cache,
                                             const SecretKey& signer) {
  const Result<SecretKey> own = read_secret_key(cache.key_file, IfMissing::create);
  if (!own) return own.error();
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const std::vector<std::byte> payload =
      encode_payload({std::string(tuning_format), {bytes.begin(), bytes.end()}, {}, {}});
  EntryView entry;
  entry.format = tuning_format;
  entry.material = *name.material;
  entry.stored = payload;
  entry.compression = Compression::zstd;
  const EntryKey key(*own);
  const auto encoded = encode_entry(entry, key);
  if (!encoded) return encoded.error();
  return make_object(*encoded, key, name.folder, {}, signer);
}

}  // namespace

Result<std::vector<TuningOutcome>> push_tuning(const CacheConfig& cache, const RemoteStores& stores,
                                               const DeviceInfo& device, std::string_view text) {
  if (Status status = check_rights(); !status.ok()) return status;
  if (Status status = check_key_file_place(cache); !status.ok()) return status;
  const auto endpoints = writing_endpoints(cache, stores);
  if (!endpoints) return endpoints.error();
  const AskedProgram name = tuning_of(device);
  std::vector<TuningOutcome> outcomes;
  for (const auto& endpoint : *endpoints) {
    TuningOutcome outcome;
    outcome.url = endpoint->config().url;
    const auto signer = endpoint->signer();
    const auto object = signer ? tuning_object(name, text, cache, *signer) : signer.error();
    outcome.failure = object ? endpoint->put(name.name(), *object, limits_by_hand()) : object.error();
    if (outcome.failure.ok()) outcome.text = text;
    if (!outcome.failure.ok()) outcome.failure = outcome.failure.within("remote " + outcome.url);
    endpoint->save();
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

Result<std::vector<TuningOutcome>> pull_tuning(const CacheConfig& cache, const RemoteStores& stores,
                                               const DeviceInfo& device) {
  if (Status status = check_rights(); !status.ok()) return status;
  if (cache.remotes.empty()) return invalid_argument("pull: no [[cache.remote]] is configured (expected at least one)");
  const auto trusted = std::make_shared<CurrentKeys>(cache.trust_folders);
  const AskedProgram name = tuning_of(device);
  std::vector<TuningOutcome> outcomes;
  for (const RemoteConfig& remote : cache.remotes) {
    RemoteEndpoint endpoint({}, remote, cache, trusted, with_files(stores));
    TuningOutcome outcome;
    outcome.url = remote.url;
    outcome.failure = check_reads(endpoint);
    if (outcome.failure.ok()) {
      SharedCounters counters;
      outcome.failure = endpoint.fetch_many(
          std::span(&name, 1), limits_by_hand(), counters,
          [&](std::size_t, const SharedProgram& found) { outcome.text = std::string(text_of(found.binary.bytes)); });
      outcome.refused = refusals(counters.counts());
      if (!outcome.failure.ok()) outcome.failure = outcome.failure.within("remote " + remote.url);
    }
    endpoint.save();
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace kiln
