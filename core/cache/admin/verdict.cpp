#include "cache/admin/verdict.hpp"

#include "cache/format/program_payload.hpp"

namespace kiln {

EntryVerdict judge(const FileContents& file, const Digest& name, const EntryKey& key) {
  switch (file.state) {
    case FileState::read:
      break;
    case FileState::foreign:
      return {Rejection::foreign, file.why};
    case FileState::misplaced:
      return {Rejection::tampered, file.why};
    case FileState::absent:
    case FileState::too_large:
    case FileState::unreadable:
    case FileState::invalid:
      return {Rejection::corrupt, file.why};
  }
  DecodedEntry decoded = decode_entry(file.bytes, key);
  if (decoded.rejection != Rejection::none) return {decoded.rejection, std::move(decoded.why)};
  if (sha256(decoded.entry.material) != name) return {Rejection::tampered, "it holds the program of another key"};
  const auto payload = inflate_payload(decoded.entry);
  if (!payload) return {Rejection::corrupt, payload.error().message};
  if (const auto program = decode_payload({}, *payload); !program) {
    return {Rejection::corrupt, program.error().message};
  }
  return {};
}

}  // namespace kiln
