/** The words in French, with "vous". */
import type { Words } from "./en";

const plurals = new Intl.PluralRules("fr");
const isOne = (count: number) => plurals.select(count) === "one";

export const fr: Words = {
  language: "fr",
  direction: "ltr",
  product: "Vestibule",
  title: (page) => `${page} · Vestibule`,
  skip: "Aller au contenu",
  nav: {
    label: "Pages du compte",
    account: "Profil",
    sessions: "Vos sessions",
    session: "Cette session",
  },
  theme: {
    label: "Thème",
    names: { system: "Système", light: "Clair", dark: "Sombre" },
  },
  languages: "Langue",
  signIn: "Se connecter",
  signOut: "Se déconnecter",
  retry: "Réessayer",
  retrying: "Nouvelle tentative…",
  home: "Aller à la page d’accueil",
  reference: (requestId) => `Identifiant de la requête\u00a0: ${requestId}`,
  connection: {
    offline: "Vous êtes hors ligne",
    offlineDetail: "Rien n’est perdu. Cette page reprendra dès que vous serez de nouveau en ligne.",
    down: "Le service ne répond pas",
    downDetail: "Rien n’est perdu. Nous continuons d’essayer de le joindre.",
  },
  analytics: {
    label: "Utilisation de ces pages",
    ask: "Pouvons-nous enregistrer la façon dont vous utilisez ces pages\u00a0?",
    detail:
      "Cela nous aide à les améliorer. Votre navigateur masque les textes, les noms et tout ce que vous saisissez avant tout envoi. Nous ne voyons pas qui vous êtes.",
    yes: "Oui, autoriser",
    no: "Non",
    on: "Nous enregistrons votre utilisation de ces pages, avec vos données masquées.",
    off: "Nous n’enregistrons pas votre utilisation de ces pages.",
    stop: "Arrêter l’enregistrement",
    start: "Autoriser",
  },
  homePage: {
    title: "Bienvenue",
    lead: "Bienvenue.",
    what: "Connectez-vous une seule fois. Voyez avec quel compte et où vous êtes connecté, et déconnectez les sessions que vous ne reconnaissez pas.",
    points: [
      {
        title: "Votre profil",
        detail: "Ce que votre fournisseur communique à votre sujet, et rien d’autre.",
      },
      {
        title: "Vos sessions",
        detail:
          "Tous les navigateurs où vous êtes connecté. Si vous en déconnectez un, il perd aussitôt l’accès.",
      },
      {
        title: "Vos jetons restent sur le serveur",
        detail: "Ce navigateur ne détient qu’un cookie de session, jamais les jetons de votre fournisseur.",
      },
    ],
    greeting: (name) => `Bonjour ${name}.`,
    signedIn: "Vous êtes connecté.",
    toAccount: "Aller à votre compte",
    unknown: "Nous ne pouvons pas vérifier pour le moment si vous êtes connecté.",
    checking: "Vérification de votre connexion",
  },
  account: {
    title: "Profil",
    loading: "Chargement de votre profil",
    verified: "Vérifiée",
    unverified: "Non vérifiée",
    noEmail: "Votre fournisseur n’a communiqué aucune adresse e-mail",
    organization: "Organisation",
    refresh: "Actualiser auprès du fournisseur",
    refreshing: "Actualisation…",
    refreshed: "Votre profil est à jour.",
    refreshFailed: "Nous n’avons pas pu actualiser votre profil",
    refreshFailedDetail: "Vous voyez la dernière version que nous avons reçue. Réessayez dans un instant.",
    signInDetails: "Détails de la connexion",
    thisDevice: "Cet appareil",
    signedIn: "Connecté",
    provider: "Fournisseur",
    yourProvider: "Votre fournisseur d’identité",
    expires: "Déconnexion si inutilisé",
    ends: "Déconnexion au plus tard",
    needsSignIn:
      "Votre fournisseur demande une nouvelle connexion avant que ce site puisse agir en votre nom.",
    signInAgain: "Se reconnecter",
    failed: "Nous n’avons pas pu charger les détails de votre session",
    claims: "Ce que votre fournisseur communique",
    claimsShow: "Afficher les données",
    claimsHide: "Masquer les données",
    claimsNote:
      "Votre fournisseur a communiqué ces données lors de la connexion. Nous les affichons telles quelles.",
    copy: "Copier",
    copied: "Copié",
    copyFailed: "Copie impossible",
    toSessions: "Voir toutes vos sessions",
  },
  sessions: {
    title: "Vos sessions",
    lead: "Tous les navigateurs où vous êtes connecté. Si vous n’en reconnaissez pas un, déconnectez-le.",
    loading: "Chargement de vos sessions",
    failed: "Nous n’avons pas pu charger vos sessions",
    current: "Ce navigateur",
    boundHere: "Liée à cet appareil",
    boundElsewhere: "Liée à son appareil",
    unknownBrowser: "Navigateur inconnu",
    unreadable: "Session illisible",
    unreadableDetail: "Nous ne savons pas d’où elle vient. Vous pouvez la déconnecter.",
    on: (browser, system) => `${browser} sous ${system}`,
    label: (device, when) => `${device}, session ouverte le ${when}`,
    shared: (facts) => `Dans chaque session\u00a0: ${facts}`,
    lastActive: (when) => `Dernière activité ${when}`,
    started: "Début",
    expires: "Expiration",
    end: "Déconnecter",
    endLabel: (device) => `Déconnecter ${device}`,
    ending: "Déconnexion…",
    ended: (device) => `${device} est déconnecté.`,
    endFailed: (device) => `Nous n’avons pas pu déconnecter ${device}`,
    endFailedDetail: "La session est toujours ouverte. Réessayez dans un instant.",
    endOthers: "Se déconnecter partout ailleurs",
    endOthersAsk: "Se déconnecter partout ailleurs\u00a0?",
    endOthersDetail: (count) =>
      isOne(count)
        ? "Vous devrez vous reconnecter dans l’autre navigateur."
        : `Vous devrez vous reconnecter dans les ${count} autres navigateurs.`,
    othersEnded: (count) =>
      isOne(count) ? `${count} session est déconnectée.` : `${count} sessions sont déconnectées.`,
    othersFailed: "Nous n’avons pas pu déconnecter les autres sessions",
    onlyThis: "Vous n’êtes connecté nulle part ailleurs.",
    more: "Afficher plus",
    cancel: "Annuler",
  },
  session: {
    title: "Cette session",
    lead: "Combien de temps ce navigateur reste connecté.",
    loading: "Chargement de cette session",
    timeline: "Chronologie de cette session",
    started: "Début",
    bound: "Liée à cet appareil",
    boundDetail: "Copiés sur un autre appareil, ses cookies cessent vite de fonctionner.",
    rolled: "Dernière prolongation",
    token: "Expiration du jeton d’accès",
    idle: "Déconnexion si inutilisé",
    absolute: "Déconnexion au plus tard",
    stay: "Rester connecté",
    staying: "Prolongation…",
    stayed: (when) => `Vous restez connecté jusqu’au ${when}.`,
    stayFailed: "Nous n’avons pas pu prolonger la session",
    scopes: "Ce que vous avez autorisé",
    noScopes: "Rien de plus que la connexion.",
    scopeMeanings: {
      openid: "Savoir que c’est vous",
      profile: "Lire votre nom et votre photo",
      email: "Lire votre adresse e-mail",
      phone: "Lire votre numéro de téléphone",
      address: "Lire votre adresse postale",
      offline_access: "Rester connecté en votre absence",
    },
  },
  expiry: {
    title: "Êtes-vous toujours là\u00a0?",
    detail: (left) => `Vous serez déconnecté dans ${left}.`,
    stay: "Rester connecté",
    signOut: "Se déconnecter",
    lastTitle: "Reconnectez-vous bientôt",
    lastDetail: (when, left) =>
      `Vous devrez vous reconnecter à ${when}, dans\u00a0${left}. Faites-le maintenant ou continuez jusque-là.`,
    goOn: "Continuer pour l’instant",
  },
  theft: {
    title: "Nous avons mis fin à l’une de vos sessions pour vous protéger",
    detail: (when) =>
      `Une copie de son cookie a été utilisée le ${when}, peut-être par quelqu’un d’autre. Vérifiez vos sessions et déconnectez celles que vous ne reconnaissez pas. Si vous ne pouvez pas expliquer cette copie, changez votre mot de passe chez votre fournisseur.`,
    dismiss: "Masquer",
  },
  ended: {
    title: "Vous êtes déconnecté",
    detail: "Votre session a pris fin. Reconnectez-vous pour revenir sur cette page.",
    causes: {
      other_device: "Cette session a été déconnectée depuis un autre navigateur.",
      logout: "Vous vous êtes déconnecté dans une autre fenêtre.",
      back_channel_logout: "Vous vous êtes déconnecté chez votre fournisseur.",
      front_channel_logout: "Vous vous êtes déconnecté chez votre fournisseur.",
      operator: "Le responsable de ce service a mis fin à cette session.",
      replaced: "Vous vous êtes reconnecté dans ce navigateur.",
      security_event:
        "Un changement concernant votre compte ou votre appareil nous a été signalé. Nous avons mis fin à cette session pour vous protéger.",
      session_limit:
        "Vous vous êtes connecté dans plus de navigateurs que permis. Nous avons donc mis fin à la session la plus ancienne.",
      refused: "Votre fournisseur ne confirme plus cette connexion. Nous avons donc mis fin à cette session.",
      token_mismatch:
        "Votre fournisseur a répondu pour un autre compte. Nous avons donc mis fin à cette session.",
      theft:
        "Le cookie de cette session a été utilisé à deux endroits. Nous avons donc mis fin à la session. Si ce n’était pas vous, quelqu’un en avait une copie. Reconnectez-vous et vérifiez vos sessions. Si vous ne pouvez pas expliquer cette copie, changez votre mot de passe chez votre fournisseur.",
    },
    notSignedIn: "Connectez-vous pour continuer",
    notSignedInDetail:
      "Vous revenez de la page de connexion, mais ce navigateur n’a pas de session. Si cela se reproduit, vérifiez si votre navigateur bloque les cookies.",
  },
  signedOut: {
    title: "Déconnecté",
    lead: "Vous êtes déconnecté.",
    detail:
      "Ce navigateur n’a plus accès à votre compte. Sur un ordinateur partagé, fermez aussi la fenêtre.",
    hereOnly:
      "Vous êtes déconnecté ici, mais toujours connecté chez votre fournisseur. À votre prochaine connexion ici, il vous interrogera de nouveau. Sur un ordinateur partagé, déconnectez-vous aussi chez votre fournisseur.",
    again: "Se reconnecter",
    still: "Vous êtes toujours connecté.",
    stillDetail: "Votre déconnexion ne nous est pas parvenue, ou vous vous êtes reconnecté depuis.",
  },
  signInError: {
    title: "Échec de la connexion",
    lead: "La connexion n’a pas abouti.",
    reasons: {
      access_denied: "Vous ou votre fournisseur avez refusé la demande.",
      login_required: "Votre fournisseur demande d’abord une connexion avec votre mot de passe.",
      temporarily_unavailable: "Votre fournisseur n’est pas disponible pour le moment.",
      ERR_CALLBACK_HANDLER_FAILURE:
        "Nous n’avons pas pu utiliser la réponse de votre fournisseur. Elle est peut-être arrivée trop tard ou a déjà servi.",
      ERR_LOGIN_HANDLER_FAILURE: "Nous n’avons pas pu joindre votre fournisseur.",
    },
    otherwise: "Un problème est survenu entre votre fournisseur et nous. Votre compte n’est pas touché.",
  },
  notFound: {
    title: "Page introuvable",
    lead: "Il n’y a rien à cette adresse.",
    detail: "Le lien est peut-être ancien ou mal saisi.",
  },
  crash: {
    title: "Un problème est survenu",
    lead: "Un problème est survenu sur cette page.",
    detail:
      "C’est une erreur de notre part, et vous êtes toujours connecté. Rechargez la page\u00a0: cela suffit en général.",
    reload: "Recharger la page",
  },
  failed: {
    title: "Votre compte est injoignable",
    detail: "Nous ne vous avons pas déconnecté. Cette page reprendra dès que le service répondra.",
  },
};
