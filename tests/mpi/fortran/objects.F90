! Chapters 5, 7 and 8 in Fortran, and handles of all kinds: two ranks, each procedure once at least.
program objects
  USE_LINE
  use checks
  implicit none
  INCLUDE_LINE
  integer :: ierr, rank, comm, other, i, n, flags
  logical :: flag

  call MPI_Init(ierr)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, ierr)
  other = 1 - rank
  call groups
  call communicators
  call intercommunicators
  call datatypes
  call contents
  call packing
  call grids
  call graphs
  call attributes
  call old_attributes
  call report(rank)
  call MPI_Finalize(ierr)

contains

  subroutine groups
    integer :: all, one, two, result, ranks(2), ranges(3, 1)
    call MPI_Comm_group(comm, all, ierr)
    call check(all >= 4096, 'MPI_Comm_group: a handle of the program')
    call MPI_Group_size(all, n, ierr)
    call check(n == 2, 'MPI_Group_size')
    call MPI_Group_rank(all, n, ierr)
    call check(n == rank, 'MPI_Group_rank')
    call MPI_Group_incl(all, 1, [1], one, ierr)
    call MPI_Group_excl(all, 1, [1], two, ierr)
    call MPI_Group_translate_ranks(one, 1, [0], all, ranks, ierr)
    call check(ranks(1) == 1, 'MPI_Group_incl, MPI_Group_translate_ranks')
    call MPI_Group_compare(one, two, result, ierr)
    call check(result == MPI_UNEQUAL, 'MPI_Group_excl, MPI_Group_compare')
    call MPI_Group_free(one, ierr)
    call check(one == MPI_GROUP_NULL, 'MPI_Group_free')
    call MPI_Group_difference(all, two, one, ierr)
    call MPI_Group_size(one, n, ierr)
    call check(n == 1, 'MPI_Group_difference')
    call MPI_Group_free(two, ierr)
    call MPI_Group_union(all, one, two, ierr)
    call MPI_Group_compare(all, two, result, ierr)
    call check(result == MPI_IDENT, 'MPI_Group_union')
    call MPI_Group_free(two, ierr)
    call MPI_Group_intersection(all, one, two, ierr)
    call MPI_Group_compare(one, two, result, ierr)
    call check(result == MPI_IDENT, 'MPI_Group_intersection')
    call MPI_Group_free(one, ierr)
    call MPI_Group_free(two, ierr)
    ranges(:, 1) = [1, 0, -1]
    call MPI_Group_range_incl(all, 1, ranges, one, ierr)
    call MPI_Group_translate_ranks(one, 2, [0, 1], all, ranks, ierr)
    call check(ranks(1) == 1 .and. ranks(2) == 0, 'MPI_Group_range_incl')
    call MPI_Group_free(one, ierr)
    call MPI_Group_range_excl(all, 1, ranges, one, ierr)
    call MPI_Group_compare(one, MPI_GROUP_EMPTY, result, ierr)
    call check(result == MPI_IDENT, 'MPI_Group_range_excl')
    call MPI_Group_free(one, ierr)
    call MPI_Comm_create(comm, all, one, ierr)
    call MPI_Comm_compare(comm, one, result, ierr)
    call check(result == MPI_CONGRUENT, 'MPI_Comm_create, MPI_Comm_compare')
    call MPI_Comm_free(one, ierr)
    call MPI_Comm_create_group(comm, all, 3, one, ierr)
    call MPI_Comm_size(one, n, ierr)
    call check(n == 2, 'MPI_Comm_create_group')
    call MPI_Comm_free(one, ierr)
    call MPI_Comm_create_from_group(all, 'objects', MPI_INFO_NULL, MPI_ERRORS_RETURN, one, ierr)
    call MPI_Comm_size(one, n, ierr)
    call check(n == 2, 'MPI_Comm_create_from_group')
    call MPI_Comm_free(one, ierr)
    call check(one == MPI_COMM_NULL, 'MPI_Comm_free')
    call MPI_Group_free(all, ierr)
  end subroutine

  subroutine communicators
    integer :: made, info, request, length
    character(MPI_MAX_OBJECT_NAME) :: name
    character(3) :: short
    call MPI_Comm_dup(comm, made, ierr)
    call MPI_Comm_set_name(made, 'a name   ', ierr)
    call MPI_Comm_get_name(made, name, length, ierr)
    call check(name == 'a name' .and. length == 6 .and. scan(name, achar(0)) == 0, 'MPI_Comm_get_name')
    call MPI_Comm_get_name(made, short, length, ierr)
    call check(short == 'a n', 'MPI_Comm_get_name, cut')
    call MPI_Comm_get_info(made, info, ierr)
    call check(info /= MPI_INFO_NULL, 'MPI_Comm_get_info')
    call MPI_Comm_set_info(made, info, ierr)
    call check(ierr == 0, 'MPI_Comm_set_info')
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_dup_with_info(comm, info, made, ierr)
    call MPI_Comm_size(made, n, ierr)
    call check(n == 2, 'MPI_Comm_dup_with_info')
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_idup(comm, made, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Barrier(made, ierr)
    call check(ierr == 0, 'MPI_Comm_idup')
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_idup_with_info(comm, info, made, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call MPI_Barrier(made, ierr)
    call check(ierr == 0, 'MPI_Comm_idup_with_info')
    call MPI_Comm_disconnect(made, ierr)
    call check(made == MPI_COMM_NULL, 'MPI_Comm_disconnect')
    call MPI_Info_free(info, ierr)
    call MPI_Comm_split(comm, 0, -rank, made, ierr)
    call MPI_Comm_rank(made, n, ierr)
    call check(n == other, 'MPI_Comm_split')
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_split(comm, MPI_UNDEFINED, 0, made, ierr)
    call check(made == MPI_COMM_NULL, 'MPI_Comm_split of none')
    call MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made, ierr)
    call MPI_Comm_size(made, n, ierr)
    call check(n == 2, 'MPI_Comm_split_type')
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_get_parent(made, ierr)
    call check(made == MPI_COMM_NULL, 'MPI_Comm_get_parent')
  end subroutine

  subroutine intercommunicators
    integer :: self, inter, group, groups(2), merged, sent(1), got(1), types(1), session
    call MPI_Intercomm_create(MPI_COMM_SELF, 0, comm, other, 5, inter, ierr)
    call MPI_Comm_test_inter(inter, flag, ierr)
    call check(flag, 'MPI_Intercomm_create, MPI_Comm_test_inter')
    call MPI_Comm_remote_size(inter, n, ierr)
    call check(n == 1, 'MPI_Comm_remote_size')
    call MPI_Comm_remote_group(inter, group, ierr)
    call MPI_Group_rank(group, n, ierr)
    call check(n == MPI_UNDEFINED, 'MPI_Comm_remote_group')
    call MPI_Group_free(group, ierr)
    ! As many datatypes as there are remote processes.
    sent = rank
    types = MPI_INTEGER
    call MPI_Alltoallw(sent, [1], [0], types, got, [1], [0], types, inter, ierr)
    call check(got(1) == other, 'MPI_Alltoallw of an intercommunicator')
    call MPI_Intercomm_merge(inter, rank == 1, merged, ierr)
    call MPI_Comm_rank(merged, n, ierr)
    call check(n == rank, 'MPI_Intercomm_merge')
    call MPI_Comm_free(merged, ierr)
    call MPI_Comm_free(inter, ierr)
    call MPI_Comm_group(comm, group, ierr)
    call MPI_Group_incl(group, 1, [0], groups(1), ierr)
    call MPI_Group_incl(group, 1, [1], groups(2), ierr)
    call MPI_Intercomm_create_from_groups(groups(rank + 1), 0, groups(other + 1), 0, 'two sides', &
                                          MPI_INFO_NULL, MPI_ERRORS_RETURN, inter, ierr)
    call MPI_Comm_remote_size(inter, n, ierr)
    call check(n == 1, 'MPI_Intercomm_create_from_groups')
    call MPI_Comm_free(inter, ierr)
    call MPI_Group_free(group, ierr)
    call MPI_Group_free(groups(1), ierr)
    call MPI_Group_free(groups(2), ierr)
  end subroutine

  subroutine size_is(type, bytes, what)
    integer, intent(inout) :: type
    integer, intent(in) :: bytes
    character(*), intent(in) :: what
    integer :: size
    call check(ierr == 0, what)
    call MPI_Type_size(type, size, ierr)
    call check(size == bytes, what//': size')
    call MPI_Type_free(type, ierr)
    call check(type == MPI_DATATYPE_NULL, what//': MPI_Type_free')
  end subroutine

  subroutine datatypes
    integer :: type, old, length
    integer(MPI_ADDRESS_KIND) :: lb, extent, places(2)
    integer(MPI_COUNT_KIND) :: long_size, long_lb, long_extent
    character(MPI_MAX_OBJECT_NAME) :: name
    old = MPI_INTEGER
    call MPI_Type_contiguous(3, old, type, ierr)
    call MPI_Type_commit(type, ierr)
    call MPI_Type_set_name(type, 'three', ierr)
    call MPI_Type_get_name(type, name, length, ierr)
    call check(name == 'three' .and. length == 5, 'MPI_Type_get_name')
    call MPI_Type_get_extent(type, lb, extent, ierr)
    call check(lb == 0 .and. extent == 12, 'MPI_Type_get_extent')
    call MPI_Type_get_true_extent(type, lb, extent, ierr)
    call check(lb == 0 .and. extent == 12, 'MPI_Type_get_true_extent')
    call MPI_Type_get_extent_x(type, long_lb, long_extent, ierr)
    call check(long_lb == 0 .and. long_extent == 12, 'MPI_Type_get_extent_x')
    call MPI_Type_get_true_extent_x(type, long_lb, long_extent, ierr)
    call check(long_lb == 0 .and. long_extent == 12, 'MPI_Type_get_true_extent_x')
    call MPI_Type_size_x(type, long_size, ierr)
    call check(long_size == 12, 'MPI_Type_size_x')
    call size_is(type, 12, 'MPI_Type_contiguous')
    call MPI_Type_vector(2, 1, 3, old, type, ierr)
    call size_is(type, 8, 'MPI_Type_vector')
    call MPI_Type_create_hvector(2, 1, 12_MPI_ADDRESS_KIND, old, type, ierr)
    call size_is(type, 8, 'MPI_Type_create_hvector')
    call MPI_Type_indexed(2, [1, 2], [0, 3], old, type, ierr)
    call size_is(type, 12, 'MPI_Type_indexed')
    places = [0, 12]
    call MPI_Type_create_hindexed(2, [1, 2], places, old, type, ierr)
    call size_is(type, 12, 'MPI_Type_create_hindexed')
    call MPI_Type_create_indexed_block(2, 2, [0, 3], old, type, ierr)
    call size_is(type, 16, 'MPI_Type_create_indexed_block')
    call MPI_Type_create_hindexed_block(2, 2, places, old, type, ierr)
    call size_is(type, 16, 'MPI_Type_create_hindexed_block')
    call MPI_Type_create_struct(2, [1, 2], places, [MPI_INTEGER, MPI_DOUBLE_PRECISION], type, ierr)
    call size_is(type, 20, 'MPI_Type_create_struct')
    call MPI_Type_create_subarray(2, [4, 4], [2, 2], [0, 1], MPI_ORDER_FORTRAN, old, type, ierr)
    call size_is(type, 16, 'MPI_Type_create_subarray')
    call MPI_Type_create_darray(2, rank, 1, [8], [MPI_DISTRIBUTE_BLOCK], &
                                [MPI_DISTRIBUTE_DFLT_DARG], [2], MPI_ORDER_FORTRAN, old, type, ierr)
    call size_is(type, 16, 'MPI_Type_create_darray')
    call MPI_Type_create_resized(old, 0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND, type, ierr)
    call size_is(type, 4, 'MPI_Type_create_resized')
    call MPI_Type_dup(old, type, ierr)
    call size_is(type, 4, 'MPI_Type_dup')
    call MPI_Type_create_f90_integer(9, type, ierr)
    call MPI_Type_size(type, n, ierr)
    call check(n == 4, 'MPI_Type_create_f90_integer')
    call MPI_Type_create_f90_real(15, 300, type, ierr)
    call MPI_Type_size(type, n, ierr)
    call check(n == 8, 'MPI_Type_create_f90_real')
    n = type
    call MPI_Type_create_f90_real(15, 300, type, ierr)
    call check(n == type, 'MPI_Type_create_f90_real, again')
    call MPI_Type_create_f90_complex(15, 300, type, ierr)
    call MPI_Type_size(type, n, ierr)
    call check(n == 16, 'MPI_Type_create_f90_complex')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, type, ierr)
    call MPI_Type_size(type, n, ierr)
    call check(n == 8, 'MPI_Type_match_size')
    call MPI_Type_get_value_index(MPI_DOUBLE_PRECISION, MPI_INTEGER, type, ierr)
    call check(ierr == 0, 'MPI_Type_get_value_index')
  end subroutine

  ! Handles come back in INTEGERs, as many as there are.
  subroutine contents
    integer :: type, integers, addresses, types, combiner, numbers(3), made(3)
    integer(MPI_ADDRESS_KIND) :: places(2), got(2), first, second
    integer :: pair(2)
    places = [0, 8]
    call MPI_Type_create_struct(2, [1, 3], places, [MPI_INTEGER, MPI_REAL], type, ierr)
    call MPI_Type_get_envelope(type, integers, addresses, types, combiner, ierr)
    call check(all([integers, addresses, types, combiner] == [3, 2, 2, MPI_COMBINER_STRUCT]), &
               'MPI_Type_get_envelope')
    made = -5
    call MPI_Type_get_contents(type, 3, 2, 3, numbers, got, made, ierr)
    call check(all(numbers == [2, 1, 3]) .and. all(got == places), 'MPI_Type_get_contents')
    call check(all(made == [MPI_INTEGER, MPI_REAL, -5]), 'MPI_Type_get_contents: datatypes')
    call MPI_Type_free(type, ierr)
    call MPI_Get_address(pair(1), first, ierr)
    call MPI_Get_address(pair(2), second, ierr)
    call check(second - first == 4 .and. MPI_Aint_diff(second, first) == 4, 'MPI_Aint_diff')
    call check(MPI_Aint_add(first, 4_MPI_ADDRESS_KIND) == second, 'MPI_Aint_add')
    call MPI_Get_address(MPI_BOTTOM, first, ierr)
    call check(first == 0, 'MPI_Get_address of MPI_BOTTOM')
    ! Sent from its own address.
    pair = [rank, -1]
    call MPI_Get_address(pair(1), places(1), ierr)
    call MPI_Type_create_hindexed(1, [1], places, MPI_INTEGER, type, ierr)
    call MPI_Type_commit(type, ierr)
    call MPI_Sendrecv(MPI_BOTTOM, 1, type, other, 1, pair(2), 1, MPI_INTEGER, other, 1, comm, &
                      MPI_STATUS_IGNORE, ierr)
    call check(pair(2) == other, 'MPI_BOTTOM')
    call MPI_Type_free(type, ierr)
  end subroutine

  subroutine packing
    integer :: bytes, position
    integer(MPI_ADDRESS_KIND) :: long_bytes, long_position
    character(64) :: packed
    integer :: a(2)
    character(5) :: text
    call MPI_Pack_size(2, MPI_INTEGER, comm, bytes, ierr)
    call check(bytes >= 8, 'MPI_Pack_size')
    position = 0
    call MPI_Pack([3, 4], 2, MPI_INTEGER, packed, 64, position, comm, ierr)
    call MPI_Pack('hello', 5, MPI_CHARACTER, packed, 64, position, comm, ierr)
    call check(position == 13, 'MPI_Pack')
    position = 0
    call MPI_Unpack(packed, 64, position, a, 2, MPI_INTEGER, comm, ierr)
    call MPI_Unpack(packed, 64, position, text, 5, MPI_CHARACTER, comm, ierr)
    call check(all(a == [3, 4]) .and. text == 'hello', 'MPI_Unpack')
    call MPI_Pack_external_size('external32', 2, MPI_INTEGER, long_bytes, ierr)
    call check(long_bytes == 8, 'MPI_Pack_external_size')
    long_position = 0
    call MPI_Pack_external('external32', [5, 6], 2, MPI_INTEGER, packed, 64_MPI_ADDRESS_KIND, &
                           long_position, ierr)
    call check(long_position == 8 .and. ichar(packed(4:4)) == 5, 'MPI_Pack_external')
    long_position = 0
    call MPI_Unpack_external('external32  ', packed, 64_MPI_ADDRESS_KIND, long_position, a, 2, &
                             MPI_INTEGER, ierr)
    call check(all(a == [5, 6]), 'MPI_Unpack_external')
  end subroutine

  subroutine grids
    integer :: grid, line, dims(2), coords(2), kind, source, dest
    logical :: periods(2)
    dims = 0
    call MPI_Dims_create(2, 2, dims, ierr)
    call check(all(dims == [2, 1]), 'MPI_Dims_create')
    call MPI_Cart_create(comm, 2, dims, [.true., .false.], .false., grid, ierr)
    call MPI_Topo_test(grid, kind, ierr)
    call check(kind == MPI_CART, 'MPI_Topo_test')
    call MPI_Cartdim_get(grid, n, ierr)
    call check(n == 2, 'MPI_Cartdim_get')
    dims = 0
    call MPI_Cart_get(grid, 2, dims, periods, coords, ierr)
    call check(all(dims == [2, 1]) .and. periods(1) .and. .not. periods(2), 'MPI_Cart_get')
    call check(all(coords == [rank, 0]), 'MPI_Cart_get: coords')
    call MPI_Cart_rank(grid, coords, n, ierr)
    call check(n == rank, 'MPI_Cart_rank')
    call MPI_Cart_coords(grid, other, 2, coords, ierr)
    call check(all(coords == [other, 0]), 'MPI_Cart_coords')
    call MPI_Cart_shift(grid, 1, 1, source, dest, ierr)
    call check(source == MPI_PROC_NULL .and. dest == MPI_PROC_NULL, 'MPI_Cart_shift')
    call MPI_Cart_sub(grid, [.false., .true.], line, ierr)
    call MPI_Comm_size(line, n, ierr)
    call check(n == 1, 'MPI_Cart_sub')
    call MPI_Comm_free(line, ierr)
    call MPI_Cart_map(comm, 2, [2, 1], [.false., .false.], n, ierr)
    call check(n >= 0 .and. n < 2, 'MPI_Cart_map')
    call MPI_Comm_free(grid, ierr)
  end subroutine

  subroutine graphs
    integer :: graph, edges(2), indices(2), sources(1), destinations(1), weights(1), others(1)
    integer :: in, out
    call MPI_Graph_create(comm, 2, [1, 2], [1, 0], .false., graph, ierr)
    call MPI_Graphdims_get(graph, n, i, ierr)
    call check(n == 2 .and. i == 2, 'MPI_Graphdims_get')
    call MPI_Graph_get(graph, 2, 2, indices, edges, ierr)
    call check(all(indices == [1, 2]) .and. all(edges == [1, 0]), 'MPI_Graph_get')
    call MPI_Graph_neighbors_count(graph, rank, n, ierr)
    call check(n == 1, 'MPI_Graph_neighbors_count')
    call MPI_Graph_neighbors(graph, rank, 1, others, ierr)
    call check(others(1) == other, 'MPI_Graph_neighbors')
    call MPI_Comm_free(graph, ierr)
    call MPI_Graph_map(comm, 2, [1, 2], [1, 0], n, ierr)
    call check(n >= 0 .and. n < 2, 'MPI_Graph_map')
    call MPI_Dist_graph_create(comm, 1, [rank], [1], [other], [3], MPI_INFO_NULL, .false., graph, &
                               ierr)
    call MPI_Dist_graph_neighbors_count(graph, in, out, flag, ierr)
    call check(in == 1 .and. out == 1 .and. flag, 'MPI_Dist_graph_neighbors_count')
    call MPI_Dist_graph_neighbors(graph, 1, sources, weights, 1, destinations, MPI_UNWEIGHTED, ierr)
    call check(sources(1) == other .and. destinations(1) == other .and. weights(1) == 3, &
               'MPI_Dist_graph_neighbors')
    call MPI_Comm_free(graph, ierr)
    call MPI_Dist_graph_create_adjacent(comm, 1, [other], MPI_UNWEIGHTED, 1, [other], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, in, out, flag, ierr)
    call check(in == 1 .and. .not. flag, 'MPI_UNWEIGHTED')
    call MPI_Comm_free(graph, ierr)
    call MPI_Dist_graph_create_adjacent(comm, 0, sources, MPI_WEIGHTS_EMPTY, 0, destinations, &
                                        MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, in, out, flag, ierr)
    call check(in == 0 .and. out == 0 .and. flag, 'MPI_WEIGHTS_EMPTY')
    call MPI_Comm_free(graph, ierr)
  end subroutine

  subroutine attributes
    integer :: keyval, made, type, duplicate
    integer(MPI_ADDRESS_KIND) :: value, state
    integer :: calls(2)
    common /attribute_calls/ calls
    external :: copy, delete
    calls = 0
    call MPI_Comm_get_attr(comm, MPI_TAG_UB, value, flag, ierr)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Comm_get_attr(comm, MPI_WTIME_IS_GLOBAL, value, flag, ierr)
    call check(flag .and. (value == 0 .or. value == 1), 'MPI_WTIME_IS_GLOBAL')
    state = 1000
    call MPI_Comm_dup(comm, made, ierr)
    call MPI_Comm_create_keyval(copy, delete, keyval, state, ierr)
    call MPI_Comm_get_attr(made, keyval, value, flag, ierr)
    call check(.not. flag, 'MPI_Comm_get_attr of none')
    value = -3000000000_MPI_ADDRESS_KIND
    call MPI_Comm_set_attr(made, keyval, value, ierr)
    value = 0
    call MPI_Comm_get_attr(made, keyval, value, flag, ierr)
    call check(flag .and. value == -3000000000_MPI_ADDRESS_KIND, 'MPI_Comm_set_attr')
    call MPI_Comm_dup(made, duplicate, ierr)
    call MPI_Comm_get_attr(duplicate, keyval, value, flag, ierr)
    call check(flag .and. value == -3000000000_MPI_ADDRESS_KIND + 1000, 'a copy function')
    call MPI_Comm_free(duplicate, ierr)
    call MPI_Comm_delete_attr(made, keyval, ierr)
    call check(all(calls == [1, 2]), 'copy and delete functions')
    call MPI_Comm_free_keyval(keyval, ierr)
    call check(keyval == MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, state, ierr)
    call MPI_Comm_set_attr(made, keyval, 5_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(made, duplicate, ierr)
    call MPI_Comm_get_attr(duplicate, keyval, value, flag, ierr)
    call check(flag .and. value == 5, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(duplicate, ierr)
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_free_keyval(keyval, ierr)
    call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, keyval, state, ierr)
    call MPI_Type_contiguous(1, MPI_REAL, type, ierr)
    call MPI_Type_set_attr(type, keyval, 6_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_get_attr(type, keyval, value, flag, ierr)
    call check(flag .and. value == 6, 'MPI_Type_set_attr')
    call MPI_Type_dup(type, duplicate, ierr)
    call MPI_Type_get_attr(duplicate, keyval, value, flag, ierr)
    call check(.not. flag, 'MPI_TYPE_NULL_COPY_FN')
    call MPI_Type_delete_attr(type, keyval, ierr)
    call MPI_Type_get_attr(type, keyval, value, flag, ierr)
    call check(.not. flag, 'MPI_Type_delete_attr')
    call MPI_Type_free_keyval(keyval, ierr)
    call MPI_Type_free(type, ierr)
    call MPI_Type_free(duplicate, ierr)
    ! A program may call the predefined functions, too.
    value = 0
    call MPI_COMM_DUP_FN(comm, 1, state, 9_MPI_ADDRESS_KIND, value, flag, ierr)
    call check(flag .and. value == 9, 'a call of MPI_COMM_DUP_FN')
    call MPI_COMM_NULL_COPY_FN(comm, 1, state, 9_MPI_ADDRESS_KIND, value, flag, ierr)
    call check(.not. flag, 'a call of MPI_COMM_NULL_COPY_FN')
  end subroutine

  subroutine old_attributes
    integer :: keyval, value, made, duplicate
    call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, keyval, 0, ierr)
    call MPI_Comm_dup(comm, made, ierr)
    call MPI_Attr_put(made, keyval, -8, ierr)
    value = 0
    call MPI_Attr_get(made, keyval, value, flag, ierr)
    call check(flag .and. value == -8, 'MPI_Attr_put, MPI_Attr_get')
    call MPI_Comm_dup(made, duplicate, ierr)
    call MPI_Attr_get(duplicate, keyval, value, flag, ierr)
    call check(flag .and. value == -8, 'MPI_DUP_FN')
    call MPI_Attr_delete(made, keyval, ierr)
    call MPI_Attr_get(made, keyval, value, flag, ierr)
    call check(.not. flag, 'MPI_Attr_delete')
    call MPI_Keyval_free(keyval, ierr)
    call check(keyval == MPI_KEYVAL_INVALID, 'MPI_Keyval_free')
    call MPI_Comm_free(made, ierr)
    call MPI_Comm_free(duplicate, ierr)
  end subroutine
end program

subroutine copy(old, keyval, extra_state, value_in, value_out, flag, ierror)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer :: old, keyval, ierror, calls(2)
  integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
  logical :: flag
  common /attribute_calls/ calls
  calls(1) = calls(1) + 1
  value_out = value_in + extra_state
  flag = .true.
  ierror = MPI_SUCCESS
end subroutine

subroutine delete(object, keyval, value, extra_state, ierror)
  USE_LINE
  implicit none
  INCLUDE_LINE
  integer :: object, keyval, ierror, calls(2)
  integer(MPI_ADDRESS_KIND) :: extra_state, value
  common /attribute_calls/ calls
  if (extra_state == 1000) calls(2) = calls(2) + 1
  ierror = MPI_SUCCESS
end subroutine
