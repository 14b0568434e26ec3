// Arrays of numpy: .npy files and .npz containers, read (hardened) and written, without torch and without
// Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "archive/bytes/dtype.h"
#include "archive/safetensors/safetensors.h"

namespace halftone {

struct NumpyArray {
  std::string name;  ///< of the member without ".npy"; empty in a .npy file, which has no names
  DType dtype{};
  std::vector<int64_t> shape;
  bool fortran_order = false;   ///< column-major: the first index runs fastest
  std::span<std::byte> bytes;   ///< inside the file's, or `owner`'s; may be misaligned for its dtype
  std::shared_ptr<void> owner;  ///< of bytes that were deflated; nullptr: the file has them
};

/// Whether the first bytes are those of a .npy file.
bool is_npy(std::span<const std::byte> bytes);
/// Whether they are those of a zip container, as .npz files are.
bool is_zip(std::span<const std::byte> bytes);

/// One array. The header is a Python literal; only {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}
/// with these three keys is read, of 64 kB at most. kCorruptFile if it is something else, or if the
/// data are not exactly the array's; kUnsupported for Python objects, records, text, dates and big-endian
/// numbers.
NumpyArray read_npy(std::span<std::byte> bytes, const std::string& file);
/// The members of numpy.savez and numpy.savez_compressed, sorted by name, their checksums compared. What is
/// deflated is inflated piece by piece, as far as the array's header asks for, which must be what the
/// container says of it. kUnsupported where members are compressed otherwise or no arrays.
std::vector<NumpyArray> read_npz(std::span<std::byte> bytes, const std::string& file);

/// Atomically. kUnsupported for dtypes that numpy has not, and for more than 4 GB.
void write_npy(const std::string& path, const SafetensorsTensor& tensor);
void write_npz(const std::string& path, const std::vector<SafetensorsTensor>& tensors);

}  // namespace halftone
