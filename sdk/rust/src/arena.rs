//! A step's first memory: part of the memory that its component begins with.
//!
//! The standard allocator asks for memory with `memory.grow` from the first byte on. For an attempt that
//! lives for microseconds that is the dearest thing it does: the host changes the protection of pages
//! when it grows and again before the next attempt, and each time every processor has to notice. So
//! the first allocations come from a static array, and the standard allocator takes over when that is used
//! up. Nothing is given back before the end but what was allocated last: an attempt's memory is thrown
//! away with it.
//!
//! Without the feature `arena` a component can bring an allocator of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;

/// Room for a document of the largest size as text. Pages that are not touched cost nothing.
const ARENA_BYTES: usize = 256 * 1024;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ARENA: Arena = Arena::new();

struct Arena {
    bytes: UnsafeCell<[MaybeUninit<u8>; ARENA_BYTES]>,
    used: Cell<usize>,
}

#[cfg(target_arch = "wasm32")]
#[allow(unsafe_code, reason = "a component without atomics has one thread")]
// SAFETY: with atomics the module does not exist.
unsafe impl Sync for Arena {}

impl Arena {
    const fn new() -> Self {
        Self { bytes: UnsafeCell::new([MaybeUninit::uninit(); ARENA_BYTES]), used: Cell::new(0) }
    }

    fn base(&self) -> *mut u8 {
        self.bytes.get().cast()
    }

    /// Where in the arena a pointer is, if it came from there.
    fn offset(&self, pointer: *mut u8) -> Option<usize> {
        let offset = pointer.addr().wrapping_sub(self.base().addr());
        (offset < ARENA_BYTES).then_some(offset)
    }

    /// Takes the next bytes, if there is room.
    fn take(&self, layout: Layout) -> Option<usize> {
        let base = self.base().addr();
        let from = (base + self.used.get()).checked_next_multiple_of(layout.align())? - base;
        let to = from.checked_add(layout.size())?;
        (to <= ARENA_BYTES).then(|| {
            self.used.set(to);
            from
        })
    }
}

#[allow(unsafe_code, reason = "what an allocator is")]
// SAFETY: `take` hands out ranges of the array that overlap no range still in use, aligned as asked: `used` only
// falls to the beginning of the last range, when that is given back. What is not in the array is `System`'s.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout) {
            // SAFETY: the offset is inside of the array.
            Some(from) => unsafe { self.base().add(from) },
            // SAFETY: as the caller promises.
            None => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        match self.offset(pointer) {
            Some(from) if from + layout.size() == self.used.get() => self.used.set(from),
            Some(_) => {}
            // SAFETY: it came from there, as the caller promises.
            None => unsafe { System.dealloc(pointer, layout) },
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(from) = self.offset(pointer) else {
            // SAFETY: it came from there, as the caller promises.
            return unsafe { System.realloc(pointer, layout, size) };
        };
        if from + layout.size() == self.used.get() && from.checked_add(size).is_some_and(|to| to <= ARENA_BYTES) {
            self.used.set(from + size);
            return pointer;
        }
        // SAFETY: the caller promises that `size`, rounded up, fits an isize; both ranges hold what is copied.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                std::ptr::copy_nonoverlapping(pointer, new, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            new
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "an allocator is called so")]
mod tests {
    use super::*;

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).expect("a layout")
    }

    #[test]
    fn what_is_in_use_does_not_overlap_and_is_aligned() {
        let arena = Box::new(Arena::new());
        let mut used: Vec<(usize, usize)> = Vec::new();
        for (size, align) in [(1, 1), (7, 8), (64, 16), (3, 2), (4096, 4096), (1, 1)] {
            // SAFETY: no layout has size 0.
            let from = unsafe { arena.alloc(layout(size, align)) }.addr();
            assert_eq!(from % align, 0);
            assert!(used.iter().all(|(start, end)| from >= *end || from + size <= *start));
            used.push((from, from + size));
        }
    }

    #[test]
    fn the_last_one_grows_in_place_and_is_given_back() {
        let arena = Box::new(Arena::new());
        // SAFETY: each pointer is used with the layout that it was last given.
        unsafe {
            let first = arena.alloc(layout(16, 1));
            first.write_bytes(7, 16);
            assert_eq!(arena.realloc(first, layout(16, 1), 64), first);
            let second = arena.alloc(layout(8, 1));
            let moved = arena.realloc(first, layout(64, 1), 128);
            assert!(moved > second, "something stands behind it");
            assert_eq!(std::slice::from_raw_parts(moved, 16), [7; 16]);
            arena.dealloc(moved, layout(128, 1));
            assert_eq!(arena.alloc(layout(8, 1)), moved);
        }
    }

    #[test]
    fn a_full_arena_hands_over_to_the_system() {
        let arena = Box::new(Arena::new());
        // SAFETY: each pointer is used with the layout that it was last given.
        unsafe {
            let most = arena.alloc(layout(ARENA_BYTES - 8, 1));
            let beyond = arena.alloc(layout(64, 1));
            assert_eq!((arena.offset(most), arena.offset(beyond)), (Some(0), None));
            let beyond = arena.realloc(beyond, layout(64, 1), 128);
            arena.dealloc(beyond, layout(128, 1));
            let moved = arena.realloc(most, layout(ARENA_BYTES - 8, 1), ARENA_BYTES + 1);
            assert_eq!((arena.offset(moved), arena.used.get()), (None, 0));
            arena.dealloc(moved, layout(ARENA_BYTES + 1, 1));
        }
    }
}
