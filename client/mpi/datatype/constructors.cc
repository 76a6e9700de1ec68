#include "client/mpi/datatype/constructors.h"

#include "client/mpi/datatype/maker.h"

namespace ferry::mpi {
namespace {

// Whether any number of elements in a row are one run of bytes.
bool IsRun(const Datatype& type) { return type.IsDense(2) && !type.shape().marks; }

// Blocks of `length_of(i)` elements at `displacements[i] * unit` bytes.
template <typename LengthOf>
Shape JoinBlocks(Maker& maker, const Datatype& old, LengthOf&& length_of,
                 const Counts& displacements, int64_t unit) {
  ShapeBuilder& builder = maker.builder();
  ShapeJoiner joiner(builder);
  joiner.Reserve(displacements.size());
  if (IsRun(old)) {
    for (size_t i = 0; i < displacements.size(); ++i) {
      if (length_of(i) != 0) {
        joiner.AddRun(old.shape(), length_of(i), builder.Multiply(displacements[i], unit));
      }
    }
    return joiner.Join();
  }
  Shape block;
  int64_t length = 0;  // of `block`
  for (size_t i = 0; i < displacements.size(); ++i) {
    if (length_of(i) == 0) {
      continue;
    }
    // Neighbours of one length share one layout: they may turn out to be a loop.
    if (length_of(i) != length) {
      length = length_of(i);
      block = maker.Block(old, length);
    }
    joiner.Add(block, builder.Multiply(displacements[i], unit));
  }
  return joiner.Join();
}

// The same for blocks of one length.
Shape JoinEqualBlocks(Maker& maker, const Datatype& old, int64_t length,
                      const Counts& displacements, int64_t unit) {
  if (!IsRun(old)) {
    return JoinBlocks(
        maker, old, [length](size_t) { return length; }, displacements, unit);
  }
  ShapeJoiner joiner(maker.builder());
  joiner.Reserve(displacements.size());
  joiner.AddRuns(old.shape(), length, displacements, unit);
  return joiner.Join();
}

MadeDatatype MakeStrided(int combiner, CountForm form, int64_t count, int64_t blocklength,
                         int64_t stride, int64_t unit, Datatype& old) {
  if (Failure bad = CheckNotNegative(MPI_ERR_COUNT, "count", count); !bad.ok()) {
    return bad;
  }
  if (Failure bad = CheckNotNegative(MPI_ERR_ARG, "blocklength", blocklength); !bad.ok()) {
    return bad;
  }
  Maker maker(combiner, form);
  maker.AddCount(count);
  maker.AddCount(blocklength);
  combiner == MPI_COMBINER_HVECTOR ? maker.AddDisplacement(stride) : maker.AddCount(stride);
  const int64_t step = count > 1 ? maker.builder().Multiply(stride, unit) : 0;
  return maker.FinishOf(maker.builder().Repeat(maker.Block(old, blocklength), count, step), old);
}

MadeDatatype MakeBlocks(int combiner, CountForm form, Counts blocklengths, Counts displacements,
                        int64_t unit, Datatype& old) {
  if (Failure bad = CheckNoneNegative("array_of_blocklengths", blocklengths); !bad.ok()) {
    return bad;
  }
  Maker maker(combiner, form);
  const auto length_of = [&](size_t i) { return blocklengths[i]; };
  Shape shape = JoinBlocks(maker, old, length_of, displacements, unit);
  maker.AddCount(static_cast<int64_t>(blocklengths.size()));
  maker.AddCounts(std::move(blocklengths));
  combiner == MPI_COMBINER_HINDEXED ? maker.AddDisplacements(std::move(displacements))
                                    : maker.AddCounts(std::move(displacements));
  return maker.FinishOf(std::move(shape), old);
}

MadeDatatype MakeEqualBlocks(int combiner, CountForm form, int64_t blocklength,
                             Counts displacements, int64_t unit, Datatype& old) {
  if (Failure bad = CheckNotNegative(MPI_ERR_ARG, "blocklength", blocklength); !bad.ok()) {
    return bad;
  }
  Maker maker(combiner, form);
  Shape shape = JoinEqualBlocks(maker, old, blocklength, displacements, unit);
  maker.AddCount(static_cast<int64_t>(displacements.size()));
  maker.AddCount(blocklength);
  combiner == MPI_COMBINER_HINDEXED_BLOCK ? maker.AddDisplacements(std::move(displacements))
                                          : maker.AddCounts(std::move(displacements));
  return maker.FinishOf(std::move(shape), old);
}

}  // namespace

MadeDatatype MakeContiguous(CountForm form, int64_t count, Datatype& old) {
  if (Failure bad = CheckNotNegative(MPI_ERR_COUNT, "count", count); !bad.ok()) {
    return bad;
  }
  Maker maker(MPI_COMBINER_CONTIGUOUS, form);
  maker.AddCount(count);
  return maker.FinishOf(maker.Block(old, count), old);
}

MadeDatatype MakeVector(CountForm form, int64_t count, int64_t blocklength, int64_t stride,
                        Datatype& old) {
  return MakeStrided(MPI_COMBINER_VECTOR, form, count, blocklength, stride, old.extent(), old);
}

MadeDatatype MakeHvector(CountForm form, int64_t count, int64_t blocklength, int64_t stride_bytes,
                         Datatype& old) {
  return MakeStrided(MPI_COMBINER_HVECTOR, form, count, blocklength, stride_bytes, 1, old);
}

MadeDatatype MakeIndexed(CountForm form, Counts blocklengths, Counts displacements, Datatype& old) {
  return MakeBlocks(MPI_COMBINER_INDEXED, form, std::move(blocklengths), std::move(displacements),
                    old.extent(), old);
}

MadeDatatype MakeHindexed(CountForm form, Counts blocklengths, Counts displacements_bytes,
                          Datatype& old) {
  return MakeBlocks(MPI_COMBINER_HINDEXED, form, std::move(blocklengths),
                    std::move(displacements_bytes), 1, old);
}

MadeDatatype MakeIndexedBlock(CountForm form, int64_t blocklength, Counts displacements,
                              Datatype& old) {
  return MakeEqualBlocks(MPI_COMBINER_INDEXED_BLOCK, form, blocklength, std::move(displacements),
                         old.extent(), old);
}

MadeDatatype MakeHindexedBlock(CountForm form, int64_t blocklength, Counts displacements_bytes,
                               Datatype& old) {
  return MakeEqualBlocks(MPI_COMBINER_HINDEXED_BLOCK, form, blocklength,
                         std::move(displacements_bytes), 1, old);
}

MadeDatatype MakeStruct(CountForm form, const Counts& blocklengths,
                        const Counts& displacements_bytes, const std::vector<Datatype*>& types) {
  if (Failure bad = CheckNoneNegative("array_of_blocklengths", blocklengths); !bad.ok()) {
    return bad;
  }
  Maker maker(MPI_COMBINER_STRUCT, form);
  maker.AddCount(static_cast<int64_t>(blocklengths.size()));
  maker.AddCounts(blocklengths);
  maker.AddDisplacements(displacements_bytes);
  maker.ReserveTypes(types.size());
  ShapeJoiner joiner(maker.builder());
  joiner.Reserve(blocklengths.size());
  Shape block;  // of the entry before, of the type `block_of`
  const Datatype* block_of = nullptr;
  for (size_t i = 0; i < blocklengths.size(); ++i) {
    maker.AddType(*types[i]);
    maker.AddPart(*types[i], blocklengths[i]);
    if (IsRun(*types[i])) {
      joiner.AddRun(types[i]->shape(), blocklengths[i], displacements_bytes[i]);
      block_of = nullptr;
      continue;
    }
    if (types[i] != block_of || blocklengths[i] != blocklengths[i - 1]) {
      block_of = types[i];
      block = maker.Block(*types[i], blocklengths[i]);
    }
    joiner.Add(block, displacements_bytes[i]);
  }
  return maker.Finish(joiner.Join());
}

MadeDatatype MakeResized(CountForm form, int64_t lower_bound, int64_t extent, Datatype& old) {
  Maker maker(MPI_COMBINER_RESIZED, form);
  maker.AddDisplacement(lower_bound);
  maker.AddDisplacement(extent);
  return maker.FinishOf(maker.builder().Resize(old.shape(), lower_bound, extent), old);
}

MadeDatatype MakeDuplicate(Datatype& old) {
  Maker maker(MPI_COMBINER_DUP, CountForm::kInt);
  if (old.IsCommitted()) {
    maker.set_committed();
  }
  return maker.FinishOf(old.shape(), old);
}

}  // namespace ferry::mpi
