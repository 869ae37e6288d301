// .npy files, NumPy's format for one tensor: versions 1 to 3, both byte orders, C and Fortran order; f4, f8, i4, u4,
// u1.
//
// Thread-safety: free functions without shared state. Ownership: the tensor is the caller's.
// Foreign bytes are expected: nothing is allocated before the file's length is known to fit its header, and every error
// names the file, what was found and what was expected. The layout is described in data/npy_header.hpp.
#pragma once

#include "data/npy_header.hpp"

#include "base/os/atomic_file.hpp"

#include <kiln/status.hpp>
#include <kiln/tensor.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace kiln::data {

// not_found: there is no such file. corrupt: damaged, too short or too long. unsupported: another element type.
Result<std::shared_ptr<HostTensor>> read_npy(const std::filesystem::path& path);

// Its header alone, and whether the file's length fits it.
Result<NpyHeader> read_npy_form(const std::filesystem::path& path);

// The same from a whole file in memory; `name` stands in the errors.
Result<std::shared_ptr<HostTensor>> parse_npy(std::span<const std::byte> file, std::string_view name);

// Version 1.0, C order, the host's byte order. The file appears complete or not at all (kiln/result_files.hpp).
Status write_npy(const std::filesystem::path& path, const HostTensor& tensor);
// The same, but for its commit().
Result<AtomicFile> prepare_npy(const std::filesystem::path& path, const HostTensor& tensor);

}  // namespace kiln::data
