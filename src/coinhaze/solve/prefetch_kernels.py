"""Asking for memory ahead: a loop that knows what it reads next need not wait for it."""

from __future__ import annotations

from coinhaze.kernels import intrinsic


def _compiled_prefetch():
    from llvmlite import ir
    from numba import extending, types
    from numba.core import cgutils

    @extending.intrinsic
    def prefetch(typing_context, array, row, offset):
        def code(context, builder, signature, args):
            made = context.make_array(signature.args[0])(context, builder, args[0])
            stride = cgutils.unpack_tuple(builder, made.strides)[0]
            at = builder.add(builder.mul(args[1], stride), args[2])
            address = builder.add(builder.ptrtoint(made.data, ir.IntType(64)), at)
            place = builder.inttoptr(address, ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            builder.call(function, [place, word(0), word(3), word(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), code

    return prefetch


@intrinsic(_compiled_prefetch)
def prefetch(array, row, offset):
    """Ask for the cache line `offset` bytes into a row of an array."""
