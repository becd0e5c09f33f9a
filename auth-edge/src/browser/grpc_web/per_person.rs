//! How much of one kind one person has going on at once, in however many sessions: one account must not hold everything.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use session_proto::v1::Session;

/// Issuer and subject.
type Person = (String, String);

/// What is going on now, by person.
#[derive(Debug)]
pub(crate) struct PerPerson {
    most: usize,
    counts: Mutex<HashMap<Person, usize>>,
}

/// One of a person's, until dropped.
#[derive(Debug)]
pub(super) struct PersonPermit {
    permits: Arc<PerPerson>,
    person: Person,
}

impl PerPerson {
    /// So many for each person.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            counts: Mutex::default(),
        })
    }

    /// How many there are, of all people.
    pub(crate) fn count(&self) -> usize {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.values().sum()
    }

    /// A permit for the session's person; none if they hold all of theirs.
    pub(super) fn enter(self: &Arc<Self>, session: &Session) -> Option<PersonPermit> {
        let person = (session.issuer.clone(), session.subject.clone());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(person.clone()).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        let permits = Arc::clone(self);
        Some(PersonPermit { permits, person })
    }
}

impl Drop for PersonPermit {
    fn drop(&mut self) {
        let mut counts = self.permits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = counts.entry(std::mem::take(&mut self.person)) {
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
        const MOST: usize = 100;
        let people = PerPerson::new(MOST);
        let of = |subject: &str| Session {
            issuer: "issuer".to_owned(),
            subject: subject.to_owned(),
            ..Session::default()
        };
        let mut permits: Vec<_> = (0..MOST).map(|_| people.enter(&of("a")).unwrap()).collect();
        assert!(people.enter(&of("a")).is_none());
        let other = people.enter(&of("b")).unwrap();
        permits.pop();
        permits.push(people.enter(&of("a")).unwrap());
        assert!(people.enter(&of("a")).is_none());
        assert_eq!(people.count(), MOST + 1);
        drop((permits, other));
        assert!(people.counts.lock().unwrap().is_empty());
    }
}
