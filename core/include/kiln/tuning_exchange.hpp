// TuningExchange: imports and exports the winners of machines with the same device. Measure a sample of foreign winners
// before you use them.
//
// An optional interface of a TuningStore: query it with dynamic_cast. kiln/cache_sharing.hpp signs and moves the texts.
// TunableGenerator::tune() with TuneOptions::audit measures a foreign winner and the variant in use, for a spec without a
// winner on this machine. The foreign winner becomes the winner if its result is right and it is not slower.
// Thread-safety: every method from any thread. Ownership: owned by the generator.
//
//   auto* exchange = dynamic_cast<kiln::TuningExchange*>(runtime.tuning());
//   if (exchange == nullptr) return kiln::unsupported("no exchange");
//   auto merged = exchange->merge_foreign(text, device.info());  // then measure some of exchange->foreign(device.info())
//   if (!merged) return merged.error();
//   auto used = exchange->accept_foreign(device.info());
#pragma once

#include <kiln/tuning.hpp>

namespace [[gnu::visibility("default")]] kiln {

class TuningExchange {
 public:
  TuningExchange() = default;
  TuningExchange(const TuningExchange&) = delete;
  TuningExchange& operator=(const TuningExchange&) = delete;
  virtual ~TuningExchange();

  // Returns the winners on the device as text for merge_foreign(). For specs that this machine has not tuned, the text
  // has the foreign winners that this object received. Empty: no winners.
  virtual std::string winners_text(const DeviceInfo& device) noexcept = 0;
  // Stores the winners of the text for specs without a winner on this machine; `older` counts the other winners. Jobs do not
  // use foreign winners before accept_foreign(). corrupt: not a text of winners_text().
  virtual Result<MergedTuning> merge_foreign(std::string_view text, const DeviceInfo& device) noexcept = 0;
  // Returns the conv2d and gemm specs of the foreign winners, in a stable order.
  virtual std::vector<KernelSpec> foreign(const DeviceInfo& device) = 0;
  // Returns true if the spec's only winner is a foreign winner.
  virtual bool is_foreign(const KernelSpec& spec, const DeviceInfo& device) noexcept = 0;
  // Makes jobs use all foreign winners. Returns the number of winners.
  virtual Result<std::size_t> accept_foreign(const DeviceInfo& device) noexcept = 0;
};

}  // namespace kiln
