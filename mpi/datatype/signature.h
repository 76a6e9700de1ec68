// The type signature of a datatype: which basic elements in which order (MPI 5.0, section 5.1), as
// a hash that does not depend on how the datatype was made, and a few counts.
//
// The hash is a polynomial over the elements, so that sequences can be joined and repeated without
// going through their elements. Signatures that differ have equal hashes with a chance of 2^-61 an
// element. Calling thread: any. Blocks: never.
#pragma once

#include <cstdint>

#include "mpi/datatype/basic_type.h"

namespace ferry::mpi {

struct Signature {
  uint64_t hash = 0;
  uint64_t shift = 1;  // what the hash of something in front is multiplied by
  // Basic elements; a pair counts as two (MPI 5.0, section 5.1.11).
  int64_t elements = 0;
  // The one predefined datatype that it is made of; null if there is none, or several.
  const BasicType* basic = nullptr;
  int64_t basics = 0;  // how many of these; a pair is one
  bool mixed = false;
  int64_t external_bytes = 0;  // in the representation "external32"

  bool operator==(const Signature& other) const {
    return elements == other.elements && hash == other.hash;
  }
};

Signature SignatureOf(const BasicType& type);
// `front`, then `back`.
Signature JoinSignatures(const Signature& front, const Signature& back);
// count >= 0; the elements' number must not overflow.
Signature RepeatSignature(const Signature& signature, int64_t count);

}  // namespace ferry::mpi
