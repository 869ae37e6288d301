// Whether a stored entry would be handed over, judged as the disk tier judges it, and why not.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "cache/folder/read_file.hpp"
#include "cache/format/entry_format.hpp"
#include "cache/format/rejection.hpp"

#include <kiln/digest.hpp>

#include <string>

namespace kiln {

struct EntryVerdict {
  Rejection reason = Rejection::none;
  std::string why;  // empty where nothing is wrong
};

// The file of that name: read, its checksum, its authentication, its key material against its name, and its payload
// inflated. Only the driver's own judgement is left to a running job.
EntryVerdict judge(const FileContents& file, const Digest& name, const EntryKey& key);

}  // namespace kiln
