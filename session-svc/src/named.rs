//! Enums whose values have a name in records and metrics.

/// Defines such an enum: each variant, its number if it has one, and its name. `all;` adds a list of variants.
macro_rules! named {
    (all; $(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $name:literal,)+
    }) => {
        named! {
            $(#[$meta])* $vis enum $type { $($(#[$doc])* $variant $(= $number)? => $name,)+ }
        }

        impl $type {
            /// All variants.
            $vis const ALL: &[Self] = &[$(Self::$variant),+];
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[$doc:meta])* $variant:ident $(= $number:literal)? => $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $type { $($(#[$doc])* $variant $(= $number)?,)+ }

        impl $type {
            /// Its name in records and metrics.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}
