// Any bytes as a .npy file: a tensor that the bytes can hold, or an error that names the file.
#include <cstdlib>
#include <span>
#include <string>

#include "data/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto tensor = kiln::data::parse_npy(bytes, "fuzzed.npy");
  if (!tensor) {
    if (tensor.error().message.rfind("file fuzzed.npy: ", 0) != 0) std::abort();
    return 0;
  }
  if ((*tensor)->bytes().size() >= size) std::abort();
  // What was read can be written again: the same type and shape come back.
  std::string again = kiln::data::format_npy_header((*tensor)->dtype(), (*tensor)->shape());
  const auto elements = (*tensor)->bytes();
  again.append(reinterpret_cast<const char*>(elements.data()), elements.size());
  const auto copy = kiln::data::parse_npy(std::as_bytes(std::span(again)), "again.npy");
  if (!copy || (*copy)->shape() != (*tensor)->shape() || (*copy)->dtype() != (*tensor)->dtype()) std::abort();
  return 0;
}
