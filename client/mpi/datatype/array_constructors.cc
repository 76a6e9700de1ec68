// Subarrays and distributed arrays (MPI 5.0, sections 5.1.3 and 5.1.4).
#include <algorithm>
#include <string>

#include "client/mpi/datatype/constructors.h"
#include "client/mpi/datatype/maker.h"

namespace ferry::mpi {
namespace {

Failure CheckOrder(int order) {
  if (order == MPI_ORDER_C || order == MPI_ORDER_FORTRAN) {
    return {};
  }
  return {MPI_ERR_ARG,
          "order is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN: " + std::to_string(order)};
}

Failure CheckDimensions(const Counts& sizes) {
  if (sizes.empty()) {
    return {MPI_ERR_ARG, "ndims is 0: an array has one dimension at least"};
  }
  return {};
}

// The dimensions from the one that varies fastest.
std::vector<size_t> InnerFirst(size_t dimensions, int order) {
  std::vector<size_t> result(dimensions);
  for (size_t i = 0; i < dimensions; ++i) {
    result[i] = order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i;
  }
  return result;
}

Failure CheckSubarray(const Counts& sizes, const Counts& subsizes, const Counts& starts) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) {
      return OutOfRange("array_of_sizes", i, sizes[i], "positive");
    }
    if (subsizes[i] < 1 || subsizes[i] > sizes[i]) {
      return OutOfRange("array_of_subsizes", i, subsizes[i],
                        "between 1 and the array's " + std::to_string(sizes[i]));
    }
    if (starts[i] < 0 || starts[i] > sizes[i] - subsizes[i]) {
      return OutOfRange("array_of_starts", i, starts[i],
                        "between 0 and " + std::to_string(sizes[i] - subsizes[i]) +
                            ", where the subarray still ends within the array");
    }
  }
  return {};
}

// One dimension of a distributed array.
struct Dimension {
  int64_t size = 0;
  int64_t distribution = MPI_DISTRIBUTE_NONE;
  int64_t block = 0;  // resolved: no MPI_DISTRIBUTE_DFLT_DARG
  int64_t processes = 1;
  int64_t place = 0;  // this process's coordinate
};

Failure CheckDistribution(const DarrayArguments& arguments, size_t i) {
  const int64_t argument = arguments.arguments[i];
  const int64_t processes = arguments.psizes[i];
  const int64_t distribution = arguments.distributions[i];
  const bool by_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (arguments.gsizes[i] < 1) {
    return OutOfRange("array_of_gsizes", i, arguments.gsizes[i], "positive");
  }
  if (processes < 1) {
    return OutOfRange("array_of_psizes", i, processes, "positive");
  }
  if (distribution == MPI_DISTRIBUTE_NONE) {
    return processes == 1
               ? Failure{}
               : OutOfRange("array_of_psizes", i, processes, "1, as MPI_DISTRIBUTE_NONE needs it");
  }
  if (distribution != MPI_DISTRIBUTE_BLOCK && distribution != MPI_DISTRIBUTE_CYCLIC) {
    return OutOfRange("array_of_distribs", i, distribution, "one of MPI_DISTRIBUTE_...");
  }
  if (!by_default && argument < 1) {
    return OutOfRange("array_of_dargs", i, argument, "positive or MPI_DISTRIBUTE_DFLT_DARG");
  }
  if (distribution == MPI_DISTRIBUTE_BLOCK && !by_default &&
      argument < (arguments.gsizes[i] - 1) / processes + 1) {
    return OutOfRange("array_of_dargs", i, argument,
                      "enough for " + std::to_string(arguments.gsizes[i]) + " elements on " +
                          std::to_string(processes) + " processes");
  }
  return {};
}

Failure CheckDarray(const DarrayArguments& arguments) {
  if (arguments.size < 1) {
    return {MPI_ERR_ARG, "size is not positive: " + std::to_string(arguments.size)};
  }
  if (arguments.rank < 0 || arguments.rank >= arguments.size) {
    return {MPI_ERR_ARG, "rank is " + std::to_string(arguments.rank) + ", not below the size " +
                             std::to_string(arguments.size)};
  }
  int64_t processes = 1;
  for (size_t i = 0; i < arguments.gsizes.size(); ++i) {
    if (Failure bad = CheckDistribution(arguments, i); !bad.ok()) {
      return bad;
    }
    if (__builtin_mul_overflow(processes, arguments.psizes[i], &processes)) {
      return {MPI_ERR_ARG, "array_of_psizes has a product beyond 63 bits"};
    }
  }
  if (processes != arguments.size) {
    return {MPI_ERR_ARG, "array_of_psizes has the product " + std::to_string(processes) +
                             ", not the size " + std::to_string(arguments.size)};
  }
  return {};
}

// The process grid is in row-major order whatever the order of the array is.
std::vector<Dimension> ResolveDimensions(const DarrayArguments& arguments) {
  std::vector<Dimension> dimensions(arguments.gsizes.size());
  int64_t rank = arguments.rank;
  for (size_t i = dimensions.size(); i-- > 0;) {
    Dimension& dimension = dimensions[i];
    dimension.size = arguments.gsizes[i];
    dimension.distribution = arguments.distributions[i];
    dimension.processes = arguments.psizes[i];
    dimension.place = rank % dimension.processes;
    rank /= dimension.processes;
    dimension.block = arguments.arguments[i];
    if (arguments.arguments[i] == MPI_DISTRIBUTE_DFLT_DARG) {
      dimension.block = dimension.distribution == MPI_DISTRIBUTE_BLOCK
                            ? (dimension.size - 1) / dimension.processes + 1
                            : 1;
    }
  }
  return dimensions;
}

// This process's part of one dimension, of elements `step` bytes apart.
Shape Distribute(ShapeBuilder& builder, const Shape& element, const Dimension& dimension,
                 int64_t step) {
  if (dimension.distribution == MPI_DISTRIBUTE_NONE) {
    return builder.Repeat(element, dimension.size, step);
  }
  // No block is longer than the array: so there is nothing to overflow in what follows but
  // products.
  const int64_t block = std::min(dimension.block, dimension.size);
  const int64_t first = builder.Multiply(block, dimension.place);
  if (builder.overflowed() || first >= dimension.size) {
    return Shape();
  }
  const int64_t left = dimension.size - first;
  if (dimension.distribution == MPI_DISTRIBUTE_BLOCK) {
    return builder.Move(builder.Repeat(element, std::min(block, left), step),
                        builder.Multiply(first, step));
  }
  const int64_t cycle = builder.Multiply(block, dimension.processes);
  if (builder.overflowed()) {
    return Shape();
  }
  int64_t whole = 0;
  int64_t rest = left;
  if (left >= block) {
    whole = (left - block) / cycle + 1;
    rest = std::max<int64_t>((left - block) % cycle - (cycle - block), 0);
  }
  const int64_t stride = builder.Multiply(cycle, step);
  const Shape blocks = builder.Repeat(builder.Repeat(element, block, step), whole, stride);
  const Shape tail =
      builder.Move(builder.Repeat(element, rest, step), builder.Multiply(whole, stride));
  return builder.Move(builder.Join({blocks, tail}), builder.Multiply(first, step));
}

}  // namespace

MadeDatatype MakeSubarray(CountForm form, const Counts& sizes, const Counts& subsizes,
                          const Counts& starts, int order, Datatype& old) {
  for (Failure bad : {CheckDimensions(sizes), CheckOrder(order)}) {
    if (!bad.ok()) {
      return bad;
    }
  }
  if (Failure bad = CheckSubarray(sizes, subsizes, starts); !bad.ok()) {
    return bad;
  }
  Maker maker(MPI_COMBINER_SUBARRAY, form);
  maker.AddInteger(static_cast<int64_t>(sizes.size()));
  maker.AddCounts(sizes);
  maker.AddCounts(subsizes);
  maker.AddCounts(starts);
  maker.AddInteger(order);
  ShapeBuilder& builder = maker.builder();
  Shape shape = old.shape();
  int64_t step = old.extent();
  for (const size_t i : InnerFirst(sizes.size(), order)) {
    shape =
        builder.Move(builder.Repeat(shape, subsizes[i], step), builder.Multiply(starts[i], step));
    step = builder.Multiply(step, sizes[i]);
  }
  return maker.FinishOf(builder.Resize(std::move(shape), 0, step), old);
}

MadeDatatype MakeDarray(CountForm form, const DarrayArguments& arguments, Datatype& old) {
  for (Failure bad : {CheckDimensions(arguments.gsizes), CheckOrder(arguments.order)}) {
    if (!bad.ok()) {
      return bad;
    }
  }
  if (Failure bad = CheckDarray(arguments); !bad.ok()) {
    return bad;
  }
  Maker maker(MPI_COMBINER_DARRAY, form);
  maker.AddInteger(arguments.size);
  maker.AddInteger(arguments.rank);
  maker.AddInteger(static_cast<int64_t>(arguments.gsizes.size()));
  maker.AddCounts(arguments.gsizes);
  maker.AddIntegers(arguments.distributions);
  maker.AddIntegers(arguments.arguments);
  maker.AddIntegers(arguments.psizes);
  maker.AddInteger(arguments.order);
  ShapeBuilder& builder = maker.builder();
  const std::vector<Dimension> dimensions = ResolveDimensions(arguments);
  Shape shape = old.shape();
  int64_t step = old.extent();
  for (const size_t i : InnerFirst(dimensions.size(), arguments.order)) {
    shape = Distribute(builder, shape, dimensions[i], step);
    step = builder.Multiply(step, dimensions[i].size);
  }
  return maker.FinishOf(builder.Resize(std::move(shape), 0, step), old);
}

}  // namespace ferry::mpi
