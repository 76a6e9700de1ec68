#include "client/mpi/datatype/constructors.h"

#include "client/mpi/datatype/maker.h"

namespace ferry::mpi {
namespace {

// Blocks of `blocklengths[i]` elements at `displacements[i] * unit` bytes.
Shape JoinBlocks(Maker& maker, const Datatype& old, const Counts& blocklengths,
                 const Counts& displacements, int64_t unit) {
  std::vector<Shape> blocks;
  blocks.reserve(blocklengths.size());
  ShapeBuilder& builder = maker.builder();
  Shape block;
  for (size_t i = 0; i < blocklengths.size(); ++i) {
    if (blocklengths[i] == 0) {
      continue;
    }
    // Neighbours of one length share one layout: they may turn out to be a loop.
    if (i == 0 || blocklengths[i] != blocklengths[i - 1]) {
      block = maker.Block(old, blocklengths[i]);
    }
    blocks.push_back(builder.Move(block, builder.Multiply(displacements[i], unit)));
  }
  return builder.Join(blocks);
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

MadeDatatype MakeBlocks(int combiner, CountForm form, const Counts& blocklengths,
                        const Counts& displacements, int64_t unit, Datatype& old) {
  if (Failure bad = CheckNoneNegative("array_of_blocklengths", blocklengths); !bad.ok()) {
    return bad;
  }
  Maker maker(combiner, form);
  maker.AddCount(static_cast<int64_t>(blocklengths.size()));
  maker.AddCounts(blocklengths);
  combiner == MPI_COMBINER_HINDEXED ? maker.AddDisplacements(displacements)
                                    : maker.AddCounts(displacements);
  return maker.FinishOf(JoinBlocks(maker, old, blocklengths, displacements, unit), old);
}

MadeDatatype MakeEqualBlocks(int combiner, CountForm form, int64_t blocklength,
                             const Counts& displacements, int64_t unit, Datatype& old) {
  if (Failure bad = CheckNotNegative(MPI_ERR_ARG, "blocklength", blocklength); !bad.ok()) {
    return bad;
  }
  Maker maker(combiner, form);
  maker.AddCount(static_cast<int64_t>(displacements.size()));
  maker.AddCount(blocklength);
  combiner == MPI_COMBINER_HINDEXED_BLOCK ? maker.AddDisplacements(displacements)
                                          : maker.AddCounts(displacements);
  const Counts blocklengths(displacements.size(), blocklength);
  return maker.FinishOf(JoinBlocks(maker, old, blocklengths, displacements, unit), old);
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

MadeDatatype MakeIndexed(CountForm form, const Counts& blocklengths, const Counts& displacements,
                         Datatype& old) {
  return MakeBlocks(MPI_COMBINER_INDEXED, form, blocklengths, displacements, old.extent(), old);
}

MadeDatatype MakeHindexed(CountForm form, const Counts& blocklengths,
                          const Counts& displacements_bytes, Datatype& old) {
  return MakeBlocks(MPI_COMBINER_HINDEXED, form, blocklengths, displacements_bytes, 1, old);
}

MadeDatatype MakeIndexedBlock(CountForm form, int64_t blocklength, const Counts& displacements,
                              Datatype& old) {
  return MakeEqualBlocks(MPI_COMBINER_INDEXED_BLOCK, form, blocklength, displacements, old.extent(),
                         old);
}

MadeDatatype MakeHindexedBlock(CountForm form, int64_t blocklength,
                               const Counts& displacements_bytes, Datatype& old) {
  return MakeEqualBlocks(MPI_COMBINER_HINDEXED_BLOCK, form, blocklength, displacements_bytes, 1,
                         old);
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
  std::vector<Shape> blocks;
  blocks.reserve(blocklengths.size());
  for (size_t i = 0; i < blocklengths.size(); ++i) {
    maker.AddType(*types[i]);
    maker.AddPart(*types[i], blocklengths[i]);
    blocks.push_back(
        maker.builder().Move(maker.Block(*types[i], blocklengths[i]), displacements_bytes[i]));
  }
  return maker.Finish(maker.builder().Join(blocks));
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
