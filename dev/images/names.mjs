// The images there are, which are the targets of the Containerfile that people ask for, and their names on this machine.

export const IMAGES = ['edge', 'session-svc', 'web', 'dev-idp'];

/** `localhost/vestibule-edge:dev`; IMAGE_TAG says another tag. */
export const imageName = (name, tag = process.env.IMAGE_TAG || 'dev') => `localhost/vestibule-${name}:${tag}`;
