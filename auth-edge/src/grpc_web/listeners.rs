//! How many pages of one person listen at once: a stream costs as much as it is idle, and one account must not hold them all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use session_proto::v1::Session;

/// More tabs than anybody keeps open at one edge. A page beyond them asks for its session now and then instead.
const PAGES_MAX: usize = 100;

/// Issuer and subject.
type Person = (String, String);

/// The pages that listen now, by person.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<HashMap<Person, usize>>);

/// A page that listens, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    listeners: Arc<Listeners>,
    person: Person,
}

impl Listeners {
    /// A place for a page of the session's person; none if they have taken all of theirs.
    pub(super) fn enter(self: &Arc<Self>, session: &Session) -> Option<Place> {
        let person = (session.issuer.clone(), session.subject.clone());
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = pages.entry(person.clone()).or_default();
        if *count >= PAGES_MAX {
            return None;
        }
        *count += 1;
        let listeners = Arc::clone(self);
        Some(Place { listeners, person })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut pages = self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = pages.entry(std::mem::take(&mut self.person)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_so_many_places_and_gets_them_back() {
        let listeners = Arc::new(Listeners::default());
        let of = |subject: &str| Session {
            issuer: "issuer".to_owned(),
            subject: subject.to_owned(),
            ..Session::default()
        };
        let mut places: Vec<_> = (0..PAGES_MAX)
            .map(|_| listeners.enter(&of("a")).unwrap())
            .collect();
        assert!(listeners.enter(&of("a")).is_none());
        let other = listeners.enter(&of("b")).unwrap();
        places.pop();
        places.push(listeners.enter(&of("a")).unwrap());
        assert!(listeners.enter(&of("a")).is_none());
        drop((places, other));
        assert!(listeners.0.lock().unwrap().is_empty());
    }
}
